/** Defines the scope of one read of an organization, and reads single records by their ids. */
import type { Condition } from '../../domain/condition.ts';
import { type ObjectName, objectOf } from './protocol/record-ids.ts';
import type { SalesforceOptions } from './options.ts';
import { firstPage, isOneOf, rowsFrom } from './query-pages.ts';
import type { Row } from './query-row.ts';
import type { Session } from './api-session.ts';
import type { Shape } from './field-selection.ts';

/** Limits the ids in one query, because an address may have 16 KB. */
const IDS_AT_ONCE = 250;

/**
 * A field that may state an opt-out. If `says` returns unknown, the value is unclear and the record
 * is not trusted otherwise.
 */
export interface OptOutField {
  field: string;
  says(value: unknown): 'yes' | 'no' | 'unknown';
}

/** Reads records of one organization, and holds the settings for reading them. */
export interface Reader {
  session: Session;
  shapes: readonly Shape[];
  /** Every requested field. */
  fields: readonly string[];
  /** The fields that may state an opt-out from all mail. */
  optOuts: readonly OptOutField[];
  /** A condition that states an opt-out from all mail if it is true. */
  optsOut: Condition | undefined;
  where: string | undefined;
  /**
   * Returns records by their long ids, without those that do not exist or that the options exclude.
   */
  lookUp(ids: readonly string[]): Promise<Row[]>;
  /**
   * Returns the records that were merged into one of these, and the leads that were converted to
   * one of them.
   */
  lookUpThose(ids: readonly string[]): Promise<Row[]>;
}

/** The parts from which a reader is created. */
export interface ReaderOptions {
  session: Session;
  shapes: readonly Shape[];
  options: SalesforceOptions;
  fields: readonly string[];
  optOuts: readonly OptOutField[];
  optsOut: Condition | undefined;
}

/** Creates the reader for one read. */
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
