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

/** Gathers the facts that prove a listing complete. */
export interface ListingProof {
  /** Adds a record. Returns whether it is new. */
  add(value: unknown): boolean;
  /** Adds a record that cannot be read. */
  addBroken(where: string): void;
  /** Reads the total from a response; `stated` is one that was found without configuration. */
  hear(answer: unknown, stated: Stated | undefined): void;
  /** Notes that the list ended without an end mark. A total outweighs this flaw. */
  endUnmarked(flaw: Flaw): void;
  /** Notes that the list ended early, regardless of any total. */
  stop(flaw: Flaw): void;
  flaws(): Flaw[];
}

/**
 * Creates a proof. `id` and `total` are the paths of a record's id and of the total number of
 * records; `more` is what to do to read all records.
 */
export function createProof({ id, total, more }: ProofOptions): ListingProof {
  const seen = new Set<number>();
  const broken: string[] = [];
  let records = 0;
  let answers = 0;
  let stated: Stated | undefined;
  let largest: number | undefined;
  let unmarked: Flaw | undefined;
  let stopped: Flaw | undefined;
  return {
    add(value) {
      const before = seen.size;
      records += 1;
      return seen.add(markOf(identityOf(value, id))).size > before;
    },
    addBroken: (where) => void broken.push(where),
    hear(answer, found) {
      answers += 1;
      if (found && found.count > (stated?.count ?? 0)) stated = found;
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
      if (total === undefined) {
        // Within one response, two records with the same id cannot stand for a missing one.
        const fewer = fewerFlaw(answers > 1 ? seen.size : records, stated, more);
        const flaw = unmarked ?? fewer;
        return flaw ? [...flaws, flaw] : flaws;
      }
      const miscounted = countFlaw(seen.size, largest, answers > 1 ? undefined : more);
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

interface ProofOptions {
  id: string;
  total: string | undefined;
  more: string;
}

function fewerFlaw(count: number, stated: Stated | undefined, more: string): Flaw | undefined {
  if (!stated || stated.count <= count) return undefined;
  const why =
    `the answer says that more pages follow: ` +
    `${stated.path} is ${stated.count}, and ${counted(count, 'record')} came`;
  return {
    why,
    fix: `${more}; if ${stated.path} counts something else, name the total of the source`,
  };
}

function countFlaw(
  count: number,
  total: number | undefined,
  more: string | undefined,
): Flaw | undefined {
  if (total === undefined) {
    return { why: 'no answer tells the total', fix: 'correct total of the source, or remove it' };
  }
  if (count < total) {
    const why = `${count} different records were read, and the CRM counts ${total}`;
    const again = 'read it again when the CRM is quieter, in an order that does not change';
    return { why, fix: more ?? again };
  }
  if (count === total) return undefined;
  const why = `${count} different records were read, more than the total of ${total}`;
  return { why, fix: 'read it again; is total of the source the number of all, not of a page?' };
}
