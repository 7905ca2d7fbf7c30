/**
 * Finds the party that stands for one that was merged into another (Tryton's "Replace").
 *
 *   was            leads to                          comes as
 *   not merged     ·                                 itself
 *   merged         a party, itself merged or not     the last of them, under its own id
 *   merged         nothing, or in a circle           itself, inactive
 *
 * A merged party is thus a person whose address has changed to that of the remaining one, and whose
 * opt-outs move along. A party that is inactive in the end and has no address, not even a former
 * one, was never a contact, or was erased: it is no record.
 */
import type { JsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import type { Parties } from './party-listing.ts';
import type { Party } from './party-record.ts';

/** The most merges that are followed from one party. */
const MOST_STEPS = 10;

/** The parts that following merges needs. */
export interface Settling {
  parties: Parties;
  records: JsonRecords;
}

/** Returns the records of these parties, in this order. */
export async function settle(
  { parties, records }: Settling,
  rows: readonly Party[],
): Promise<SourceRecord[]> {
  const known = new Map<number, Party | null>(rows.map((row) => [row.id, row]));
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const ids = [...new Set(rows.flatMap((row) => needOf(row, known) ?? []))];
    if (ids.length === 0) break;
    for (const id of ids) known.set(id, null);
    for (const row of await parties.some(ids)) known.set(row.id, row);
  }
  return rows.flatMap((row) => {
    const last = lastOf(row, known);
    if (!last.isActive && !last.isReachable) return [];
    const where = `party ${row.id}${last.id === row.id ? '' : `, merged into ${last.id}`}`;
    return [records.recordOf({ ...last.values, id: String(row.id) }, where, last.text)];
  });
}

/** Returns the parties that were merged into one of these, however far: they change with it. */
export async function standIns(parties: Parties, rows: readonly Party[]): Promise<Party[]> {
  const seen = new Set(rows.map(({ id }) => id));
  const found: Party[] = [];
  let ids = [...seen];
  for (let step = 0; step < MOST_STEPS && ids.length > 0; step += 1) {
    const fresh = (await parties.losers(ids)).filter(({ id }) => !seen.has(id));
    found.push(...fresh);
    ids = fresh.map(({ id }) => id);
    for (const id of ids) seen.add(id);
  }
  return found;
}

type Known = ReadonlyMap<number, Party | null>;

/** Returns the id that has to be looked up next; undefined: none. */
function needOf(row: Party, known: Known): number | undefined {
  let at = row;
  for (let steps = 0; steps <= MOST_STEPS && at.replacedBy !== undefined; steps += 1) {
    const next = known.get(at.replacedBy);
    if (next === undefined) return at.replacedBy;
    if (next === null) return undefined;
    at = next;
  }
  return undefined;
}

function lastOf(row: Party, known: Known): Party {
  let at = row;
  for (let steps = 0; steps <= MOST_STEPS; steps += 1) {
    if (at.replacedBy === undefined) return at;
    const next = known.get(at.replacedBy);
    if (!next) return row;
    at = next;
  }
  return row;
}
