/** Remembers canaries between runs, and has each run judged by them. */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Traces } from '../world/snapshot-files.ts';
import type { Approval, Passing } from './approvals.ts';
import { createOccasions } from './canary-occasions.ts';
import { afterRun, nameOf, type Guard, type Noted, type SliceSoFar } from './canary-steps.ts';
import type { Arrival, Known, Outing } from './checker-state.ts';

const guards: readonly Guard[] = ['delete', 'opt_in', 'template'];

interface Ended {
  files: Pick<Traces, 'canaries'>;
  summary: Summary | undefined;
}

export interface Canaries {
  /** A change has reached the platform that the CRM does not state of one person. */
  changed(what: string, change: Omit<Passing, 'done'>, arrival: Arrival): void;
  /** The platform has refused an enrolment: address, channel, subscription. */
  refused(enrolment: string, outing: Outing): void;
  /** Whether an approval does not count for a class, because it is older than a finding. */
  outdates(guard: Passing['guard'], approval: Approval): boolean;
  /** What was done to somebody proves nothing any more: they are forgotten. */
  drop(key: string): void;
  /** A run has ended, or was killed: what it has changed is judged. */
  ended(outing: Outing, end: Ended): void;
  /** The snapshot is gone, and with it all canaries. */
  lose(): void;
}

type Facts = Pick<Known, 'story' | 'clock' | 'witness' | 'judge'>;

export function createCanaries(known: Facts): Canaries {
  const { story, clock } = known;
  const open = new Map<Guard, SliceSoFar>();
  const occasions = createOccasions();
  let noted: Noted[] = [];

  return {
    changed(what, { guard, ...change }, { outing, entry }) {
      if (!story.canary || guard === 'opt_out') return;
      const { contactId, path, status } = entry;
      const id = contactId ?? path.split('/').at(-1);
      const is = status < 300 ? 'done' : undefined;
      noted.push({ ...change, guard, what, id, is, at: clock.monotonic(), outing });
    },
    refused(enrolment, outing) {
      const [key = '', part = '', op] = enrolment.split(' ');
      if (!story.canary || op !== 'opt_in') return;
      const about = { guard: 'opt_in', op, keys: [key], part, target: undefined } as const;
      const what = `${key} was to be opted in to ${part}`;
      noted.push({ ...about, what, id: undefined, is: 'refused', at: clock.monotonic(), outing });
    },
    outdates(guard, approval) {
      const canary = guard === 'opt_out' ? undefined : open.get(guard);
      return canary?.state === 'failed' && canary.former.has(nameOf(approval));
    },
    drop(key) {
      const forget = (one: Noted): Noted =>
        one.keys.includes(key) ? { ...one, is: undefined } : one;
      for (const [guard, one] of open) open.set(guard, { ...one, slice: one.slice.map(forget) });
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
        const standing = open.get(guard);
        const isOf = (mapping: string | null | undefined): boolean =>
          guard === 'template' || mapping === outing.mapping;
        const mine = standing && isOf(standing.mapping) ? standing : undefined;
        const theirs = late.filter((one) => one.guard === guard);
        const before = mine && { ...mine, slice: [...mine.slice, ...theirs] };
        const book = isOf(files.canaries?.mapping) ? files.canaries : undefined;
        // Of a run that was killed nobody knows whether it has heard of a refusal.
        const own = all
          .filter((one) => one.guard === guard)
          .map((one) => (summary || one.is === 'done' ? one : { ...one, is: undefined }));
        const isOccasion = occasions.is(guard, outing);
        const run = { guard, own, outing, isOccasion, now: nowIn(book, guard) };
        const after = afterRun(before, run, known);
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

function isAboutAll({ chosen, undoes, forgets }: Outing): boolean {
  return chosen === undefined && !undoes && forgets === undefined;
}

function nowIn(book: Traces['canaries'], guard: Guard) {
  const now = book?.classes[guard];
  const last = book?.last;
  const isItsEnd = last?.class === guard && last.run === now?.run;
  return now && { state: now.state, isApproved: isItsEnd && last.is === 'approved' };
}
