/**
 * Defines the cursors of this source: a time of the server's clock, and a mark of what was read.
 * With another database, user or fields, every record counts as changed. The same applies after a
 * category is renamed or removed, because no party shows that change.
 */
import { markedCursors } from '../shared/change-cursor.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Api, Listed } from './tryton-api.ts';
import type { SelectedFields } from './field-selection.ts';
import type { TrytonOptions } from './options.ts';

const PAGE = 1000;
/** The server's clock has no fractions of a second. */
const SECOND_MS = 1000;

/** The cursors of one read. */
export interface Cursors {
  /**
   * Returns the cursor after a read that began then. It is never before the cursor from which that
   * read continued.
   */
  after(startedAtMs: number | undefined, sinceMs?: number): string | undefined;
  /**
   * Returns the time in a cursor, or undefined if it was made for other settings or is in the
   * future.
   */
  read(cursor: string, startedAtMs: number | undefined): number | undefined;
}

interface Read {
  fields: readonly string[];
  wanted: SelectedFields;
}

/** Returns the cursors of a read. Requests the categories if they are read. */
export async function cursorsOf(
  api: Api,
  options: TrytonOptions,
  { fields, wanted }: Read,
): Promise<Cursors> {
  const { url, database, username, language = '', overlap } = options;
  const overlapMs = milliseconds(overlap);
  const categories = wanted.categories ? await categoriesIn(api) : [];
  const what = [new URL(url).host, database, username, language, fields.toSorted(), categories];
  const { at, timeIn } = markedCursors(what, 12);
  return {
    after(startedAtMs, sinceMs) {
      if (startedAtMs === undefined) return undefined;
      const fromMs = Math.max(startedAtMs - overlapMs, sinceMs ?? 0);
      return at(new Date(fromMs).toISOString());
    },
    read(cursor, startedAtMs) {
      const ms = Date.parse(timeIn(cursor) ?? '');
      if (Number.isNaN(ms)) return undefined;
      // The clock was set back, or this is another database. Changes made before the old time would
      // be missing from the list.
      const isAhead = startedAtMs !== undefined && ms >= startedAtMs + SECOND_MS;
      return isAhead ? undefined : ms;
    },
  };
}

async function categoriesIn(api: Api): Promise<unknown[]> {
  const all: unknown[] = [];
  for (let above = 0; ;) {
    const { values } = await api.list('party.category', {
      above,
      domain: [],
      fields: ['name'],
      limit: PAGE,
    });
    if (values.length === 0) return all;
    all.push(...values.map(({ id, name }: Listed) => [id, name]));
    above = Math.max(above + 1, ...values.map(({ id }) => id));
  }
}
