/** One reading of an organization: what of it is read, and single records by their ids. */
import type { Condition } from '../../domain/condition.ts';
import { type ObjectName, objectOf } from './protocol/record-ids.ts';
import type { SalesforceOptions } from './options.ts';
import { firstPage, isOneOf, rowsFrom } from './query-pages.ts';
import type { Row } from './query-row.ts';
import type { Session } from './api-session.ts';
import type { Shape } from './field-selection.ts';

/** An address may have 16 KB. */
const IDS_AT_ONCE = 250;

/**
 * A field that may state an opt-out. unknown: it cannot be told, and the record is not trusted
 * otherwise.
 */
export interface OptOutField {
  field: string;
  says(value: unknown): 'yes' | 'no' | 'unknown';
}

/** Reads records of one organization, and knows how they are read. */
export interface Reader {
  session: Session;
  shapes: readonly Shape[];
  /** Every requested field. */
  fields: readonly string[];
  /** The fields that may state an opt-out from all mail. */
  optOuts: readonly OptOutField[];
  /** A condition that states one when it is true. */
  optsOut: Condition | undefined;
  where: string | undefined;
  /** Returns records by their long ids, without those that do not exist or are not to be read. */
  lookUp(ids: readonly string[]): Promise<Row[]>;
  /**
   * Returns the records that were merged into one of these, and the leads that became one of them.
   */
  lookUpThose(ids: readonly string[]): Promise<Row[]>;
}

/** The parts that a reader is made of. */
export interface ReaderOptions {
  session: Session;
  shapes: readonly Shape[];
  options: SalesforceOptions;
  fields: readonly string[];
  optOuts: readonly OptOutField[];
  optsOut: Condition | undefined;
}

/** Creates the reader of one reading. */
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
