/** Many seeds, one after the other. */
import { simulate, type Told } from './simulate.ts';
import { storyOf } from './story.ts';

export interface Played extends Omit<Told, 'wrong'> {
  seeds: number;
}

export interface Failure {
  seed: number;
  wrong: string;
}

/** `failed` is told at once: a long run may be ended before its end. */
export async function play(
  seeds: Iterable<number>,
  failed: (failure: Failure) => void,
): Promise<Played> {
  const played: Played = { seeds: 0, runs: 0, requests: 0, hours: 0 };
  for (const seed of seeds) {
    const { wrong, runs, requests, hours } = await simulate(storyOf(seed));
    played.seeds += 1;
    played.runs += runs;
    played.requests += requests;
    played.hours += hours;
    if (wrong) failed({ seed, wrong: wrong.message });
  }
  return played;
}
