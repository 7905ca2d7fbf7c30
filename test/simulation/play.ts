/** Many seeds, one after the other. */
import { simulate, type Told } from './simulate.ts';
import { storyOf } from './story.ts';

export interface Played extends Omit<Told, 'wrong'> {
  seeds: number;
  failed: { seed: number; wrong: string }[];
}

export async function play(seeds: Iterable<number>): Promise<Played> {
  const played: Played = { seeds: 0, runs: 0, requests: 0, hours: 0, failed: [] };
  for (const seed of seeds) {
    const { wrong, runs, requests, hours } = await simulate(storyOf(seed));
    played.seeds += 1;
    played.runs += runs;
    played.requests += requests;
    played.hours += hours;
    if (wrong) played.failed.push({ seed, wrong: wrong.message });
  }
  return played;
}
