/** A table of jobs and what each may cost: the least time times so much, and so many 429s. */
import { algorithms } from '../../../src/emulator/limits/algorithms.ts';
import { play, type Job, type Outcome } from './limit-scenario.ts';

const SEEDS = 8;

/** Over all seeds: the mean of time / least time, and the share of 429s, in percent. */
export interface Cost {
  ratio: number;
  refused: number;
}

/** Plays one job from each seed. */
export function measure(job: Omit<Job, 'seed'>): Cost {
  const played: Outcome[] = [];
  for (let seed = 1; seed <= SEEDS; seed += 1) played.push(play({ ...job, seed }));
  const sum = (of: (one: Outcome) => number) => played.reduce((total, one) => total + of(one), 0);
  const ratio = sum((one) => one.ratio) / SEEDS;
  return { ratio, refused: (100 * sum((one) => one.refused)) / sum((one) => one.sent) };
}

/**
 * One row per line: a name, then `time 429s` for each algorithm, in the order of `algorithms`.
 * Lines without figures are headings.
 */
export function readTable(text: string): { name: string; algorithm: string; most: Cost }[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', figures = ''] = /^(.*?)((?:\s+[\d.]+ +[\d.]+%)+)\s*$/.exec(line) ?? [];
    const cells = [...figures.matchAll(/([\d.]+) +([\d.]+)%/g)];
    return cells.map(([, ratio, refused], at) => {
      const { name: algorithm } = algorithms[at]!;
      return {
        name: name.trim(),
        algorithm,
        most: { ratio: Number(ratio), refused: Number(refused) },
      };
    });
  });
}
