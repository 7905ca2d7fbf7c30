/**
 * That a canary withholds everybody but its slice (docs/canary.md). Who is in a slice is told apart
 * from how the engine chooses it: the snapshot says after each run which canary is open, and in its
 * slice are those whom runs have changed from the one that began it until it waits.
 *
 *   canary of the class   whom a run about all people may change in that class
 *   none                  everybody; on an occasion no more than `floor`
 *   begins in this run    no more than policy puts into a slice
 *   applying              those changed since it began, and others until the slice is full
 *   waiting               those changed since it began; everybody, from the first run on that
 *                         begins after `wait` and finds the slice within the bounds
 *   failed                those whom an approval shows that was given since; everybody, once all
 *                         that was shown has been approved
 *   passed                everybody, until another mapping
 *
 * Another mapping ends the canaries about people in any state. Newcomers wait like others, and so
 * does what an approval shows that was given before the slice was read back. Never withheld are
 * stated opt-outs, people flagged as deleted, erasures and new templates, none of which is noted
 * here; nor what a run does that is limited to some people, or undoes another.
 */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Traces } from '../world/snapshot-files.ts';
import type { Approval, Passing } from './approvals.ts';
import { createOccasions, isOutOfBounds, mostIn } from './canary-facts.ts';
import type { Arrival, Known, Outing } from './checker-state.ts';

type Guard = Exclude<Passing['guard'], 'opt_out'>;
const guards: readonly Guard[] = ['delete', 'opt_in', 'template'];

/** A change of a class, as it reached the platform. */
export interface Noted extends Omit<Passing, 'done'> {
  what: string;
  /** The contact or template. */
  id: string | undefined;
  done: boolean;
  /** By the clock that never jumps. */
  at: number;
  outing: Outing;
}

export interface SliceSoFar {
  /** The mapping under which it began. */
  mapping: string | undefined;
  state: 'applying' | 'waiting' | 'failed' | 'passed';
  /** How many records its slice may have. */
  most: number;
  slice: readonly Noted[];
  /** The approvals that were in force when it was found out of bounds. */
  former: ReadonlySet<string>;
}

interface Ended {
  files: Pick<Traces, 'canaries'>;
  summary: Summary | undefined;
}

export interface Canaries {
  /** A change has reached the platform that the CRM does not state of one person. */
  changed(what: string, change: Omit<Passing, 'done'>, arrival: Arrival): void;
  /** A run has ended, or was killed: what it has changed is judged. */
  ended(outing: Outing, end: Ended): void;
  /** The snapshot is gone, and with it all canaries. */
  lose(): void;
}

/** By which the engine may see the last change of a slice earlier than we do. */
const doubtMs = 15_000;

type Facts = Pick<Known, 'story' | 'clock' | 'witness' | 'judge'>;

export function createCanaries(known: Facts): Canaries {
  const { story, clock, judge } = known;
  const open = new Map<Guard, SliceSoFar>();
  const occasions = createOccasions();
  let noted: Noted[] = [];

  /** What becomes of a canary in a run, which is judged by what was known of it before. */
  function step(guard: Guard, { before, now, own, outing }: Step): SliceSoFar | undefined {
    const rule = 'nobody outside the slice is changed while a canary is open';
    const stay = (outside: readonly Noted[], why: string): void => {
      const [one] = outside;
      judge(rule, one !== undefined && `${one.what}, and the canary of ${guard} ${why}`);
    };
    const fill = (slice: readonly Noted[], most: number): void => {
      const n = countOf(slice);
      const wrong = n > most && `${own.at(-1)?.what}, as number ${n} of a slice of ${most}`;
      judge(rule, wrong);
    };
    if (!before) {
      if (now) {
        const most = mostIn(guard, outing, known);
        fill(own, most);
        const state = now.state === 'applying' ? 'applying' : 'waiting';
        return { mapping: outing.mapping, state, most, slice: own, former: new Set() };
      }
      const many = countOf(own) > (story.canary?.floor ?? 0) && occasions.is(guard, outing);
      const begins = 'many changes of an occasion begin with the slice of a canary';
      judge(begins, many && `${own.at(-1)?.what}, one of ${countOf(own)}, and no canary began`);
      return undefined;
    }
    const { state, slice, most } = before;
    switch (state) {
      case 'applying': {
        const all = [...slice, ...own];
        fill(all, most);
        if (!now) return undefined;
        return { ...before, slice: all, state: now.state === 'applying' ? state : 'waiting' };
      }
      case 'waiting': {
        if (now?.state === 'failed') {
          stay(own, 'is out of bounds');
          return { ...before, state: 'failed', former: new Set(outing.approvals.map(nameOf)) };
        }
        const isEarly = outing.startedAt - lastOf(slice) < (story.canary?.waitMs ?? 0) - doubtMs;
        const isOut = isOutOfBounds(before, outing, known);
        if (now?.state === 'passed' && !isEarly && !isOut) {
          stay([], '');
          return { ...before, state: 'passed' };
        }
        const outside = own.filter((one) => !slice.some((other) => isSame(one, other)));
        stay(outside, isOut && !isEarly ? 'is out of bounds' : 'waits');
        return before;
      }
      case 'failed': {
        const fresh = outing.approvals.filter((one) => !before.former.has(nameOf(one)));
        const shown = fresh.flatMap((one) => one.shown.filter((other) => other.guard === guard));
        if (now?.state === 'passed' && shown.length > 0) return { ...before, state: 'passed' };
        const isShown = ({ keys, target }: Noted): boolean =>
          shown.some((one) => keys.includes(one.key) || one.target === target);
        stay(
          own.filter((one) => !isShown(one)),
          'is out of bounds, and nobody has approved that',
        );
        return now || outing.mode === 'fast' ? before : undefined;
      }
      case 'passed':
        return guard === 'template' && !now ? undefined : before;
    }
  }

  return {
    changed(what, change, { outing, entry }) {
      if (!story.canary) return;
      const { contactId, path, status } = entry;
      const id = contactId ?? path.split('/').at(-1);
      const done = status < 300;
      noted.push({ ...change, what, id, done, at: clock.monotonic(), outing });
    },
    ended(outing, { files, summary }) {
      if (!story.canary) return;
      // What a dead process had sent arrives while another one runs, and belongs to its slice.
      const late = noted.filter((one) => one.outing !== outing && isAboutAll(one.outing));
      const all = noted.filter((one) => one.outing === outing);
      noted = isAboutAll(outing) ? [] : late;
      if (!isAboutAll(outing)) return;
      occasions.begins(outing);
      for (const guard of guards) {
        const known = open.get(guard);
        const isOf = (mapping: string | null | undefined): boolean =>
          guard === 'template' || mapping === outing.mapping;
        const mine = known && isOf(known.mapping) ? known : undefined;
        const theirs = late.filter((one) => one.guard === guard);
        const before = mine && { ...mine, slice: [...mine.slice, ...theirs] };
        const book = isOf(files.canaries?.mapping) ? files.canaries : undefined;
        const own = all.filter((one) => one.guard === guard);
        const after = step(guard, { before, now: book?.classes[guard], own, outing });
        if (after) open.set(guard, after);
        else open.delete(guard);
      }
      occasions.ended(outing, summary);
    },
    lose() {
      open.clear();
      noted = [];
      occasions.lose();
    },
  };
}

interface Step {
  before: SliceSoFar | undefined;
  /** What the snapshot says of the canary after the run. */
  now: Pick<SliceSoFar, 'state'> | undefined;
  /** What the run has changed. */
  own: readonly Noted[];
  outing: Outing;
}

function isAboutAll({ chosen, undoes, forgets }: Outing): boolean {
  return chosen === undefined && !undoes && forgets === undefined;
}

function nameOf({ plan, at }: Approval): string {
  return `${plan} ${at}`;
}

function lastOf(slice: readonly Noted[]): number {
  return Math.max(...slice.map(({ at }) => at));
}

/** Whether both are about the same person or template. */
function isSame(one: Noted, other: Noted): boolean {
  return one.keys.some((key) => other.keys.includes(key)) || one.id === other.id;
}

/** Counts the people or templates. */
function countOf(all: readonly Noted[]): number {
  return all.filter((one, at) => !all.slice(0, at).some((other) => isSame(one, other))).length;
}
