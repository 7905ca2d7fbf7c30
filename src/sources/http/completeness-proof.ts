/**
 * Decides whether a read over HTTP was complete:
 *
 *   `total` is configured      → exactly as many distinct records as the largest total stated.
 *                                A total that changes meanwhile is harmless by itself, and one
 *                                that counts a page proves nothing
 *   `total` is not configured  → the end was marked: no next cursor after one, or an empty page;
 *                                and no response states a total above the records read
 *   always                     → no error, every record read, and no other flaw
 *
 * Records are distinguished by their id, or without one by their entire content.
 */
import { counted } from '../../domain/values/counted.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import { brokenFlaw, type Flaw, markOf } from '../shared/read-certificate.ts';
import { countOf, type Stated } from './more-signs.ts';

export type ListingProof = ReturnType<typeof createProof>;

/**
 * Creates what gathers the facts that prove a listing complete. `id` and `total` are the paths of a
 * record's id and of the total number of records; `more` is what to do to read all records.
 */
export function createProof(id: string, total: string | undefined, more: string) {
  const seen = new Set<number>();
  const broken: string[] = [];
  let records = 0;
  let answers = 0;
  let stated: Stated | undefined;
  let largest: number | undefined;
  let unmarked: Flaw | undefined;
  let stopped: Flaw | undefined;
  return {
    add(value: unknown): boolean {
      const before = seen.size;
      records += 1;
      const text = idOf(value, id);
      return seen.add(markOf(text === '' ? `record ${toText(value)}` : `id ${text}`)).size > before;
    },
    addBroken: (where: string) => void broken.push(where),
    /** Reads the total from a response; `found` is one that was found without configuration. */
    hear(answer: unknown, found: Stated | undefined): void {
      answers += 1;
      if (found && found.count > (stated?.count ?? 0)) stated = found;
      const count = total === undefined ? undefined : countOf(fieldAt(answer, total));
      if (count !== undefined) largest = Math.max(count, largest ?? 0);
    },
    /** Notes that the list ended without an end mark. A total outweighs this flaw. */
    endUnmarked: (flaw: Flaw) => void (unmarked = flaw),
    /** Notes that the list ended early, regardless of any total. */
    stop: (flaw: Flaw) => void (stopped = flaw),
    flaws(): Flaw[] {
      const flaws: Flaw[] = [];
      if (stopped) return [stopped];
      if (broken.length > 0) {
        const fix = 'mend those records in the CRM';
        flaws.push(brokenFlaw('record', { count: broken.length, first: broken[0], fix }));
      }
      if (total === undefined) {
        // Within one response, two records with the same id cannot stand for a missing one.
        const count = answers > 1 ? seen.size : records;
        if (unmarked) return [...flaws, unmarked];
        if (!stated || stated.count <= count) return flaws;
        const { path } = stated;
        const came = `${path} is ${stated.count}, and ${counted(count, 'record')} came`;
        const fix = `${more}; if ${path} counts something else, name the total of the source`;
        return [...flaws, { why: `the answer says that more pages follow: ${came}`, fix }];
      }
      if (largest === undefined) {
        const fix = 'correct total of the source, or remove it';
        return [...flaws, { why: 'no answer tells the total', fix }];
      }
      if (seen.size === largest) return flaws;
      const read = `${seen.size} different records were read`;
      if (seen.size > largest) {
        const fix = 'read it again; is total of the source the number of all, not of a page?';
        return [...flaws, { why: `${read}, more than the total of ${largest}`, fix }];
      }
      const again = 'read it again when the CRM is quieter, in an order that does not change';
      const fix = answers > 1 ? again : more;
      return [...flaws, { why: `${read}, and the CRM counts ${largest}`, fix }];
    },
  };
}

export function idOf(value: unknown, path: string): string {
  const id = fieldAt(value, path);
  return typeof id === 'string' || typeof id === 'number' ? String(id).trim() : '';
}

function toText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'nested too deeply to be told from others';
  }
}
