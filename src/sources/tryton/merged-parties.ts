/**
 * Whom a party stands for, once it was merged into another (Tryton's "Replace").
 *
 *   was            leads to                          comes as
 *   not merged     ·                                 itself
 *   merged         a party, itself merged or not     the last of them, under its own id
 *   merged         nobody, or in a circle            itself, inactive
 *
 * So that who was merged is somebody whose address has changed to the winner's, and who takes her
 * opt-outs along. Who is inactive in the end and has no address, not even a former one, was never
 * anybody here, or was erased: that is no record.
 */
import type { JsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import type { Parties } from './party-reader.ts';
import type { Party } from './party-record.ts';

/** So many merges of one party after the other are followed. */
const MOST_STEPS = 10;

export interface Settling {
  parties: Parties;
  records: JsonRecords;
}

/** In this order. */
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

/** Those that were merged into one of these, however far: they change with it. */
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

/** The id that has to be looked up to go on from here. */
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
