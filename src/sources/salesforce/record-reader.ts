/** One reading of an organization: what of it is read, and single records of it by their ids. */
import type { Condition } from '../../domain/condition.ts';
import { objectOf, type ObjectName } from './protocol/record-ids.ts';
import type { SalesforceOptions } from './options.ts';
import { firstPage, rowsFrom } from './query-pages.ts';
import type { Row } from './query-row.ts';
import type { Session } from './api-session.ts';
import type { Shape } from './field-selection.ts';
import { isOneOf } from './soql-query.ts';

/** An address may have 16 KB. */
const IDS_AT_ONCE = 250;

/** unknown: nobody can tell, and the record is not believed otherwise. */
export interface OptOutField {
  field: string;
  says(value: unknown): 'yes' | 'no' | 'unknown';
}

export interface Reader {
  session: Session;
  shapes: readonly Shape[];
  /** Every field that is asked for. */
  fields: readonly string[];
  /** Fields that may say an opt-out from all mail. */
  optOuts: readonly OptOutField[];
  /** Of which true is one as well. */
  optsOut: Condition | undefined;
  where: string | undefined;
  /** Records by their long ids; who is not there, or not to be read, is not among them. */
  lookUp(ids: readonly string[]): Promise<Row[]>;
  /** Those that were merged into one of these, or are leads that became one of them. */
  lookUpThose(ids: readonly string[]): Promise<Row[]>;
}

export interface ReaderOptions {
  session: Session;
  shapes: readonly Shape[];
  options: SalesforceOptions;
  fields: readonly string[];
  optOuts: readonly OptOutField[];
  optsOut: Condition | undefined;
}

export function createReader({ session, shapes, options, ...rest }: ReaderOptions): Reader {
  const { where } = options;
  const find = async (shape: Shape, field: string, ids: readonly string[]): Promise<Row[]> => {
    const found: Row[] = [];
    for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
      const some = ids.slice(from, from + IDS_AT_ONCE);
      const query = { shape, where: [isOneOf(field, some), where] };
      const pages = rowsFrom(session, query, await firstPage(session, query));
      for await (const rows of pages) found.push(...rows);
    }
    return found;
  };
  const ofObject = (ids: readonly string[], object: ObjectName) =>
    ids.filter((id) => objectOf(id) === object);
  return {
    session,
    shapes,
    ...rest,
    where,
    async lookUp(ids) {
      const found: Row[] = [];
      for (const shape of shapes) {
        found.push(...(await find(shape, 'Id', ofObject(ids, shape.object))));
      }
      return found;
    },
    async lookUpThose(ids) {
      const found: Row[] = [];
      const contacts = ofObject(ids, 'Contact');
      const isWithContacts = shapes.some(({ object }) => object === 'Contact');
      for (const shape of shapes) {
        found.push(...(await find(shape, 'MasterRecordId', ofObject(ids, shape.object))));
        if (shape.object === 'Lead' && isWithContacts) {
          found.push(...(await find(shape, 'ConvertedContactId', contacts)));
        }
      }
      return found;
    },
  };
}
