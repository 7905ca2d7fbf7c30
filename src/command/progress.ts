import type { Clock } from '../model/clock.ts';
import type { Progress } from '../sync/mirror.ts';
import type { Shell } from './shell.ts';

const redrawMs = 100;
const shownStages = {
  reading: 'read',
  listing: 'listed',
  deciding: 'decided',
  applying: 'applied',
};

/** One line that tells what is going on, at which rate, and for how much longer. */
export function createProgress(shell: Shell, clock: Clock): (progress: Progress) => void {
  const began = new Map<string, number>();
  let drawn = 0;
  return ({ stage, kind, done, of }) => {
    if (!shell.interactive) return;
    const now = clock.monotonic();
    const since = began.get(stage + kind) ?? now;
    began.set(stage + kind, since);
    if (now - drawn < redrawMs && done !== of) return;
    drawn = now;
    const perSecond = now > since ? (done / (now - since)) * 1000 : 0;
    const total = of === undefined ? '' : ` of ${of.toLocaleString('en')}`;
    const count = `${done.toLocaleString('en')}${total}`;
    shell.progress(`${kind}s ${shownStages[stage]} ${count}${paceOf(perSecond, of, done)}`);
  };
}

function paceOf(perSecond: number, of: number | undefined, done: number): string {
  if (perSecond === 0) return '';
  const rate = `, ${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`;
  if (of === undefined || done >= of) return rate;
  return `${rate}, ${durationOf((of - done) / perSecond)} left`;
}

/** Seconds as people say them: 40 s, 3 min, 5.2 h. */
function durationOf(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5_400) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3_600).toFixed(1)} h`;
}
