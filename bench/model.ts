/**
 * `npm run bench model [mirrors] [workers …]`: a fleet that is too large for this machine, in
 * virtual time. Each run takes the processor time that docs/fleet.md states, on a worker with
 * one core and its real number of slots, and waits for the platform as long as its requests take.
 * All mirrors are due in the same second, every five minutes. Which worker
 * has which mirror is decided by the real function, in real time.
 */
import { createHash } from 'node:crypto';
import { ownerOf } from '../src/compose/fleet/fleet.ts';

const mirrors = Number(process.argv[2] ?? 10_000);
const fleets = process.argv.length > 3 ? process.argv.slice(3).map(Number) : [3, 6, 10, 20, 30];

/** What docs/fleet.md says, in milliseconds of processor time and in MB. */
const cost = { opening: 25, each1600: 50, full1000: 60, closedMb: 0.12, workerMb: 210, openMb: 8 };
/** Of a platform: there and back, and its limit for each customer. */
const network = { tripMs: 100, perSecond: 10, page: 100 };
const slots = 12;
const windowMs = 300_000;

interface Run {
  cpuMs: number;
  requests: number;
}

const peopleOf = (name: string): number =>
  200 + (createHash('sha256').update(name).digest().readUInt16BE(0) % 4_801);

/** A fast run that changes nothing, or a full one. */
function runOf(people: number, isFull: boolean): Run {
  const compared = isFull ? (people / 1_000) * cost.full1000 : (people / 1_600) * cost.each1600;
  const requests = isFull ? Math.ceil(people / network.page) + 1 : 2;
  return { cpuMs: cost.opening + compared, requests };
}

/**
 * Plays the runs of one worker that are due at once: how late each begins, and when the last has
 * ended. The core serves one run at a time; a run that waits for the platform keeps its slot.
 */
function play(runs: readonly Run[]): { lateMs: number[]; endMs: number } {
  const free = Array.from({ length: slots }, () => 0);
  let coreMs = 0;
  const lateMs: number[] = [];
  for (const { cpuMs, requests } of runs) {
    const slot = free.indexOf(Math.min(...free));
    const beginMs = free[slot] ?? 0;
    lateMs.push(beginMs);
    coreMs = Math.max(coreMs, beginMs) + cpuMs;
    const waitMs = Math.max(requests * network.tripMs, (requests / network.perSecond) * 1_000);
    free[slot] = Math.max(coreMs, beginMs + waitMs);
  }
  return { lateMs, endMs: Math.max(...free) };
}

function at(sorted: readonly number[], share: number): string {
  const ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return `${(ms / 1_000).toFixed(0)} s`;
}

const names = Array.from({ length: mirrors }, (_, nth) => `m${nth}`);
const known = new Set(names);
const rows = fleets.map((count) => {
  const nodes = Array.from({ length: count }, (_, nth) => ({
    name: `worker${nth}-0123abcd`,
    slots,
    mirrors: known,
    isDraining: false,
  }));
  const owners = (living: typeof nodes) =>
    names.map((name) => ({ name, owner: ownerOf(name, living) }));
  const began = performance.now();
  const all = owners(nodes);
  const decidingMs = performance.now() - began;
  const shares = [...Map.groupBy(all, ({ owner }) => owner).values()];
  const played = (isFull: boolean) =>
    shares.map((own) => play(own.map(({ name }) => runOf(peopleOf(name), isFull))));
  const fast = played(false);
  const late = fast.flatMap(({ lateMs }) => lateMs).toSorted((a, b) => a - b);
  const full = Math.max(...played(true).map(({ endMs }) => endMs));
  const largest = Math.max(...shares.map((own) => own.length));
  const weights = shares.map((own) => own.reduce((sum, { name }) => sum + peopleOf(name), 0));
  const busy = Math.max(...fast.map(({ endMs }) => endMs)) / windowMs;
  return {
    workers: count,
    'mirrors each': largest,
    'heaviest/mean': ((Math.max(...weights) * count) / weights.reduce((a, b) => a + b, 0)).toFixed(
      2,
    ),
    'late p50': at(late, 0.5),
    'late max': at(late, 1),
    'of five minutes': `${Math.round(busy * 100)} %`,
    'all in full': `${(full / 60_000).toFixed(0)} min`,
    'memory each': `${Math.round(cost.workerMb + largest * cost.closedMb + slots * cost.openMb)} MB`,
    'to decide': `${decidingMs.toFixed(0)} ms`,
    'record each': `${Math.round(JSON.stringify(names).length / 1_024)} KB`,
  };
});
const hourly = (mirrors * 2 * 3_600_000) / windowMs;
console.log(`${mirrors} mirrors: ${hourly} requests an hour to the platforms, without changes`);
console.table(rows);
