/** Says what canaries are doing, what was found when one was read back, and what waits for it. */
import {
  type Canary,
  type CanaryBound,
  canaryBounds,
  type CanaryPolicy,
  type CanaryCounts,
} from '../../domain/guards/canary.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import type { AskedClass } from '../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { countWords } from './guard-text.ts';

const words: Record<CanaryBound, (n: number) => string> = {
  unsubscribed: (n) => `unsubscribed or ${isOrAre(n, 'was', 'were')} blocked`,
  refused: (n) => `${isOrAre(n, 'was', 'were')} refused by the platform`,
  drift: (n) => `${isOrAre(n, 'does', 'do')} not show what was written`,
};

function isOrAre(n: number, one: string, many: string): string {
  return n === 1 ? one : many;
}

/** Returns what is out of bounds, if anything. A slice with nothing left has shown nothing. */
export function judgeCanary(
  guard: AskedClass,
  found: CanaryCounts,
  { bounds, afterMs }: { bounds: CanaryPolicy['bounds']; afterMs: number },
): string | undefined {
  const isAboutPeople = guardRows[guard].recordType === 'contact';
  if (found.of === 0)
    return `${isAboutPeople ? 'nobody' : 'no template'} of the canary is left to be read back`;
  const out = canaryBounds.filter((bound) => found[bound] * 100 > bounds[bound] * found.of);
  if (out.length === 0) return undefined;
  const [one, many] = isAboutPeople ? ['person', 'people'] : ['template', 'templates'];
  const said = out.map((bound, at) => {
    const n = withCommas(found[bound]);
    const whose = at === 0 ? ` of ${counted(found.of, one, many)} of the canary` : '';
    return `${n}${whose} ${words[bound](found[bound])}`;
  });
  const minutes = Math.max(1, Math.round(afterMs / 60_000));
  const hours = Math.round(minutes / 60);
  const within = minutes < 120 ? counted(minutes, 'minute') : counted(hours, 'hour');
  return `${said.join(', ')} within ${within}`;
}

/** How a canary is shown: in `--json`, by `status` and in the console. */
export interface ToldCanary {
  class: AskedClass;
  state: Canary['state'];
  because: Canary['because'];
  /** The run that began it, and lists the slice. */
  run: string;
  /** The people or templates of the slice, and of all that were planned. */
  size: number;
  of: number;
  since: string;
  /** When the slice may be read back; null unless it waits for that. */
  readFrom: string | null;
  /** What was found out of bounds; null if nothing was. */
  found: string | null;
  /** How many of a slice that is out of bounds count for each cause; null if that is not known. */
  counts: CanaryCounts | null;
}

/** Returns a canary as programs read it. */
export function tellCanary(
  guard: AskedClass,
  canary: Canary,
  { waitMs }: { waitMs: number },
): ToldCanary {
  const { state, because, run, size, of, begunAt } = canary;
  const readFrom = state === 'waiting' ? instant(canary.since.at + waitMs) : null;
  const found = state === 'failed' ? canary.says : null;
  const counts = (state === 'failed' && canary.counts) || null;
  const since = instant(begunAt);
  return { class: guard, state, because, run, size, of, since, readFrom, found, counts };
}

function instant(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
}

const reasons: Record<Canary['because'], string> = {
  'first load': 'this is a first load',
  mapping: 'the mapping has changed',
  templates: 'many templates change',
};

export function sliceWords({
  class: of,
  ...told
}: {
  class: AskedClass;
  size: number;
  of: number;
}): string {
  const { recordType, words: about } = guardRows[of];
  return `a canary of ${countWords(recordType, told.size)} of ${withCommas(told.of)} ${about.planned}`;
}

/** States what a canary is about, and how far it is. */
export function canaryWords(told: ToldCanary): string {
  const slice = sliceWords(told);
  const why = reasons[told.because];
  switch (told.state) {
    case 'applying':
      return `${slice} is being changed, because ${why}`;
    case 'waiting':
      return `${slice} has been changed, because ${why}; it is read back from ${told.readFrom} on`;
    case 'failed':
      return `${slice} is out of bounds: ${told.found}`;
    default:
      return `${slice} was within bounds`;
  }
}

/** States how many records wait for a canary, until when, and what to do. */
export function waitingWords(
  guard: AskedClass,
  waiting: number,
  { state, size, readFrom }: ToldCanary,
): { reason: string; fix: string } {
  const { recordType, words: about } = guardRows[guard];
  const wait = waiting === 1 ? 'waits' : 'wait';
  const who = `${countWords(recordType, waiting)} ${about.planned} ${wait}`;
  const canary = `the canary of ${countWords(recordType, size)} (policy.canary)`;
  if (state === 'applying')
    return { reason: `${who} for ${canary}`, fix: 'the next run goes on with the slice' };
  return {
    reason: `${who} for ${canary}, which is read back from ${readFrom} on`,
    fix: 'run again then; a worker goes on by itself',
  };
}
