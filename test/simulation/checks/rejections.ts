/**
 * What operators have rejected, as anybody could know who saw what was shown when that was done: it
 * is neither sent nor waits for an approval while everything stays as it was shown. Told apart from
 * how the engine remembers it, which may end a rejection only because something has changed.
 */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { isLiving, keyIn, wishFor, type Reading } from '../world/crm.ts';
import { isSameChange, type Passing, type Shown } from './approvals.ts';
import type { Arrival, Known, Outing } from './checker-state.ts';
import type { Witness } from '../world/platform-history.ts';

/** Less than the thirty days for which a rejection lasts, since clocks may jump. */
const lastsMs = 29 * 86_400_000;

export interface Rejection extends Shown {
  /** By the clock of the mirror. */
  at: number;
  /** What both sides showed when it was held; undefined once that has changed. */
  sight: string | undefined;
}

export interface Rejections {
  /** A run has ended, and holds these: what both sides show of them now. */
  held(shown: readonly Shown[], seen: Sight): void;
  reject(changes: readonly Shown[], at: number): void;
  /** An operator has taken the rejection of these back; answers whether there was any. */
  takeBack(changes: readonly Shown[]): boolean;
  /** All of them, whether they are certain or not. */
  all(): readonly Rejection[];
  /** The rejections of which it is certain that they are in force. */
  certain(outing: Outing, witness: Witness): Rejection[];
  /** Whether anything is rejected about this address. */
  of(key: string): boolean;
  /** Whether any change of this address and class, in this channel if one is named, is rejected. */
  some(of: { guard: Shown['guard']; key?: string; parts?: readonly string[] }): boolean;
  /** A run of people has ended: what it was shown otherwise than before need not stay rejected. */
  read(seen: Sight): void;
  /** Something was decided about somebody: nothing is certain of them. */
  drop(key: string): void;
  /** The snapshot is gone, and with it what was rejected. */
  lose(): void;
}

interface Sight {
  reading: Reading;
  witness: Witness;
}

const nameOf = ({ guard, key, op, part, target }: Shown): string =>
  [guard, key, op === 'create' ? 'opt_in' : op, part, target].join(' ');

/** `everOf`: the addresses that a record of the CRM has had. */
export function createRejections(everOf: (id: string) => ReadonlySet<string>): Rejections {
  const sightOf = sightsBy(everOf);
  let rejected: Rejection[] = [];
  /** What both sides showed of what is held. */
  const sights = new Map<string, string>();
  return {
    held(shown, seen) {
      sights.clear();
      for (const one of shown) {
        const sight = sightOf(one, seen);
        if (sight !== undefined) sights.set(nameOf(one), sight);
      }
    },
    reject(changes, at) {
      for (const one of changes) rejected.push({ ...one, at, sight: sights.get(nameOf(one)) });
    },
    takeBack(changes) {
      const names = new Set(changes.map(nameOf));
      const count = rejected.length;
      rejected = rejected.filter((one) => !names.has(nameOf(one)));
      return rejected.length < count;
    },
    all: () => [...rejected],
    certain: ({ ourStart, people }, witness) =>
      rejected.filter(
        (one) =>
          one.sight !== undefined &&
          ourStart - one.at < lastsMs &&
          one.sight === sightOf(one, { reading: people, witness }),
      ),
    of: (key) => rejected.some((one) => one.key === key),
    some: ({ guard, key, parts }) =>
      rejected.some(
        (one) =>
          one.guard === guard &&
          (key === undefined || one.key === key) &&
          (parts === undefined || parts.includes(one.part)),
      ),
    read(seen) {
      for (const one of rejected) if (one.sight !== sightOf(one, seen)) one.sight = undefined;
    },
    drop(key) {
      for (const one of rejected) if (one.key === key) one.sight = undefined;
    },
    lose() {
      rejected = [];
      sights.clear();
    },
  };
}

/**
 * What decides about a change: the CRM's word, and the contacts; undefined for templates. An old
 * address is removed depending on the new one, too: a run that still waits for the new one does not
 * plan that, which ends a rejection.
 */
function sightsBy(everOf: (id: string) => ReadonlySet<string>) {
  return ({ guard, key, part }: Shown, { reading, witness }: Sight): string | undefined => {
    if (guard === 'template') return undefined;
    const asks =
      guard === 'opt_in' ? wishFor(reading, key, part) === 'opt_in' : !isLiving(reading, key);
    if (!asks || !reading.certified) return undefined;
    const records = reading.records.filter(
      (record) =>
        keyIn(record) === key || (guard === 'delete' && everOf(String(record['id'])).has(key)),
    );
    const addresses = new Set([key, ...records.flatMap((record) => keyIn(record) ?? [])]);
    const contacts = [...addresses].flatMap(witness.present).map(({ id, left, channels }) => {
      const states = [...channels].filter(([channel]) => part === '' || channel === part);
      return [id, left?.at, states.map(([channel, { is, at }]) => [channel, is, at])];
    });
    return JSON.stringify([records, contacts]);
  };
}

/** What an operator has rejected does not leave. */
export function checkRejected(
  what: string,
  change: Omit<Passing, 'done'>,
  { arrival: { outing }, known }: { arrival: Pick<Arrival, 'outing'>; known: Known },
): void {
  const { rejections, witness, judge } = known;
  if (!rejections.some({ guard: change.guard })) return;
  const found = outing.rejected.find((one) => isSameChange(one, change));
  const isStill = found && rejections.certain(outing, witness).includes(found);
  judge('a rejected change is not sent', isStill ? `${what}, and that was rejected` : false);
}

/** Whether a run leaves it to the next one to show what this guard holds. */
function isShownLater(guard: string, problems: Summary['problems']): boolean {
  const found = problems.find((one) => one.class === 'held' && one.key === guard);
  return found?.fix?.includes('a run will ask for approval') === true;
}

/** Nor does it wait for an approval. `held`: by the plan of a run that could do all of its work. */
export function checkNotAsked(
  outing: Outing,
  { held, summary }: { held: readonly Shown[]; summary: Pick<Summary, 'contacts' | 'problems'> },
  { rejections, witness, judge }: Known,
): void {
  const certain = rejections
    .certain(outing, witness)
    .filter((one) => outing.rejected.includes(one));
  for (const guard of ['delete', 'opt_in'] as const) {
    if (!certain.some((one) => one.guard === guard)) continue;
    const isCertain = (one: Shown): boolean =>
      certain.some(
        (other) => nameOf(one) === nameOf({ ...other, target: other.target && one.target }),
      );
    const rest = held.filter((one) => one.guard === guard && !isCertain(one));
    // What a later round withholds is shown by the next run only.
    const isHeld = summary.contacts.held[guard] > 0 && !isShownLater(guard, summary.problems);
    const isAsked = rest.length === 0 && isHeld;
    const wrong = isAsked && `all that guard ${guard} would hold was rejected, and awaits approval`;
    judge('a rejected change does not await approval', wrong);
  }
}
