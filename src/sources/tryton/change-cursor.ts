/**
 * From where changes are read on: a time of the server's clock, and a mark of what was read. With
 * another database, user or fields everybody has changed; so has everybody when a category is
 * renamed or removed, of which no party tells.
 */
import { hash } from 'node:crypto';
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Api, Listed } from './tryton-api.ts';
import type { SelectedFields } from './field-selection.ts';
import type { TrytonOptions } from './options.ts';

const PAGE = 1000;
/** Of which the server's clock tells no part. */
const SECOND_MS = 1000;

export interface Cursors {
  /** Of a reading that began then; never before the one it went on from. */
  after(startedAtMs: number | undefined, sinceMs?: number): string | undefined;
  /** The time in a cursor; undefined: it is of something else, or lies ahead. */
  read(cursor: string, startedAtMs: number | undefined): number | undefined;
}

interface Read {
  fields: readonly string[];
  wanted: SelectedFields;
}

export async function cursorsOf(
  api: Api,
  options: TrytonOptions,
  { fields, wanted }: Read,
): Promise<Cursors> {
  const { url, database, username, language = '', overlap } = options;
  const overlapMs = milliseconds(overlap);
  const categories = wanted.categories ? await categoriesIn(api) : [];
  const what = [new URL(url).host, database, username, language, fields.toSorted(), categories];
  const mark = hash('sha256', JSON.stringify(what)).slice(0, 12);
  return {
    after(startedAtMs, sinceMs) {
      if (startedAtMs === undefined) return undefined;
      const fromMs = Math.max(startedAtMs - overlapMs, sinceMs ?? 0);
      return `${new Date(fromMs).toISOString()} ${mark}`;
    },
    read(cursor, startedAtMs) {
      const [time = '', of] = cursor.split(' ');
      const ms = Date.parse(time);
      if (of !== mark || Number.isNaN(ms)) return undefined;
      // The clock was put back, or the database is another: what happened until then is not told.
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
