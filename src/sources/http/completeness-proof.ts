/**
 * Decides whether a read over HTTP was complete:
 *
 *   responses state a total    → exactly as many distinct records as the largest total stated.
 *                                A total that changes meanwhile is harmless by itself, and one
 *                                that counts a page proves nothing
 *   no response states one     → the end was marked: no next cursor after one, or an empty page
 *   always                     → no error, every record read, and no other flaw
 *
 * Records are distinguished by their id, or without one by their entire content.
 */
import { fieldAt } from '../../domain/values/record-field.ts';
import { brokenFlaw, type Flaw, markOf } from '../shared/read-certificate.ts';

/** Gathers the facts that prove a listing complete. */
export interface ListingProof {
  /** Adds a record. Returns whether it is new. */
  add(value: unknown): boolean;
  /** Adds a record that cannot be read. */
  addBroken(where: string): void;
  /** Reads the total from a response. */
  hear(answer: unknown): void;
  /** Notes that the list ended without an end mark. A total outweighs this flaw. */
  endUnmarked(flaw: Flaw): void;
  /** Notes that the list ended early, regardless of any total. */
  stop(flaw: Flaw): void;
  flaws(): Flaw[];
}

/**
 * Creates a proof. `id` and `total` are the paths of a record's id and of the total number of
 * records.
 */
export function createProof({
  id,
  total,
}: {
  id: string;
  total: string | undefined;
}): ListingProof {
  const seen = new Set<number>();
  const broken: string[] = [];
  let largest: number | undefined;
  let unmarked: Flaw | undefined;
  let stopped: Flaw | undefined;
  return {
    add(value) {
      const before = seen.size;
      return seen.add(markOf(identityOf(value, id))).size > before;
    },
    addBroken: (where) => void broken.push(where),
    hear(answer) {
      const told = total === undefined ? undefined : countOf(fieldAt(answer, total));
      if (told !== undefined) largest = Math.max(told, largest ?? 0);
    },
    endUnmarked: (flaw) => void (unmarked = flaw),
    stop: (flaw) => void (stopped = flaw),
    flaws() {
      /** Returns the flaws that prevent the proof. */
      const flaws: Flaw[] = [];
      if (stopped) return [stopped];
      if (broken.length > 0) {
        const fix = 'mend those records in the CRM';
        flaws.push(brokenFlaw('record', { count: broken.length, first: broken[0], fix }));
      }
      if (total === undefined) return unmarked ? [...flaws, unmarked] : flaws;
      const miscounted = countFlaw(seen.size, largest);
      return miscounted ? [...flaws, miscounted] : flaws;
    },
  };
}

/** Returns the id of a record, or '' if it has none. */
export function idOf(value: unknown, path: string): string {
  const id = fieldAt(value, path);
  return typeof id === 'string' || typeof id === 'number' ? String(id).trim() : '';
}

function identityOf(value: unknown, path: string): string {
  const text = idOf(value, path);
  return text === '' ? `record ${textOf(value)}` : `id ${text}`;
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'nested too deeply to be told from others';
  }
}

/** Parses a count, which some APIs send as text. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

function countFlaw(count: number, total: number | undefined): Flaw | undefined {
  if (total === undefined) {
    return { why: 'no answer tells the total', fix: 'correct total of the source, or remove it' };
  }
  if (count < total) {
    const why = `${count} different records were read, and the CRM counts ${total}`;
    return { why, fix: 'read it again when the CRM is quieter, in an order that does not change' };
  }
  if (count === total) return undefined;
  const why = `${count} different records were read, more than the total of ${total}`;
  return { why, fix: 'read it again; is total of the source the number of all, not of a page?' };
}
