/** Many seeds, one after the other. */
import { addUp } from './coverage.ts';
import { simulate, type Told } from './simulate.ts';
import { type StoryKind, storyOfKind } from './story/story-kinds.ts';

export interface Played extends Omit<Told, 'wrong' | 'stored'> {
  seeds: number;
}

export interface Failure {
  seed: number;
  wrong: string;
}

export type News = { is: 'seed' } | ({ is: 'failure' } & Failure);

interface Playing {
  heard(news: News): void;
  /** What the truth table has decided since. */
  takeRows(): string[];
  kind?: StoryKind;
}

/** Everything is told as it happens. */
export async function play(
  seeds: Iterable<number>,
  { heard, takeRows, kind = 'plain' }: Playing,
): Promise<Played> {
  let played: Played = total([]);
  for (const seed of seeds) {
    const story = storyOfKind(kind, seed);
    const { wrong, stored: _, ...told } = await simulate(story, { takeRows });
    played = total([played, { seeds: 1, ...told }]);
    heard({ is: 'seed' });
    if (wrong) heard({ is: 'failure', seed, wrong: wrong.message });
  }
  return played;
}

export function total(all: readonly Played[]): Played {
  const sum = (of: (one: Played) => number): number =>
    all.reduce((whole, one) => whole + of(one), 0);
  return {
    seeds: sum((one) => one.seeds),
    runs: sum((one) => one.runs),
    requests: sum((one) => one.requests),
    hours: sum((one) => one.hours),
    state: all.reduce((whole, { state }) => (whole + state) % 2 ** 48, 0),
    reached: addUp(all.map((one) => one.reached)),
  };
}
