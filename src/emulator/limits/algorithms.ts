import { Invalid } from '../../domain/errors.ts';
import { aligned, fixed } from './fixed-window.ts';
import { gcra } from './gcra.ts';
import type { Algorithm } from './limit-meter.ts';
import { slidingCounter, slidingLog } from './sliding-window.ts';

/** Every algorithm, with one line for people. */
export const algorithms: readonly { name: string; line: string; counts: Algorithm }[] = [
  { name: 'fixed', line: 'a window begins with its first request', counts: fixed },
  { name: 'aligned', line: 'windows lie end to end since the epoch', counts: aligned },
  {
    name: 'sliding-log',
    line: 'never more than the limit in any window',
    counts: slidingLog,
  },
  {
    name: 'sliding-counter',
    line: 'the window before counts for the share that still overlaps',
    counts: slidingCounter,
  },
  { name: 'gcra', line: 'capacity comes back evenly, one request at a time', counts: gcra },
];

/** Returns the algorithm of this name; fixed by default. Throws Invalid for an unknown name. */
export function findAlgorithm(name = 'fixed'): Algorithm {
  const found = algorithms.find((one) => one.name === name);
  if (found) return found.counts;
  const names = algorithms.map((one) => one.name).join(', ');
  throw new Invalid(`algorithm "${name}" is not known: use one of ${names}`);
}
