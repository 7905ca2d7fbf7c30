/** Plays inputs on an area, in shares of a hundred, each drawn from a seed of its own. */
import fc from 'fast-check';
import { type Area, type OpenArea } from './area.ts';
import { conditionArea } from './conditions.ts';
import { configArea } from './config.ts';
import { emulatorArea } from './emulator.ts';
import { csvArea, ndjsonArea } from './records.ts';
import { templateArea } from './templates.ts';
import { webhookArea } from './webhooks.ts';

export const areas: readonly Area[] = [
  configArea,
  csvArea,
  ndjsonArea,
  conditionArea,
  templateArea,
  webhookArea,
  emulatorArea,
];

/** An input for which something does not hold, as small as it could be made. */
export interface Find {
  input: unknown;
  why: string;
}

export interface Played {
  inputs: number;
  finds: Find[];
}

export interface Course {
  inputs: number;
  from: number;
  /** Called before each share. */
  begins?(share: { seed: number; inputs: number }): void;
}

const SHARE = 100;
/** More of them would be the same ones again. */
const MOST_FINDS = 10;

export async function play(area: Area, { inputs, from, begins }: Course): Promise<Played> {
  const played: Played = { inputs: 0, finds: [] };
  const open = await area.open();
  try {
    for (let seed = from; played.inputs < inputs && played.finds.length < MOST_FINDS; seed += 1) {
      const share = Math.min(SHARE, inputs - played.inputs);
      begins?.({ seed, inputs: share });
      const { count, find } = await playShare(open, { seed, numRuns: share }, played.finds);
      played.inputs += count;
      if (find) played.finds.push(find);
    }
  } finally {
    await open.close();
  }
  return played;
}

/** Until the first find that is not known yet. */
async function playShare(
  { inputs, judge }: OpenArea,
  drawn: { seed: number; numRuns: number },
  known: readonly Find[],
): Promise<{ count: number; find?: Find }> {
  let found: string | undefined;
  const property = fc.asyncProperty(inputs, async (input) => {
    try {
      await judge(input);
    } catch (error) {
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (known.some((find) => alike(find.why, why))) return;
      // While it is made smaller it is to stay the same find.
      found ??= why;
      if (alike(found, why)) throw error;
    }
  });
  const { failed, counterexample, numRuns: count } = await fc.check(property, drawn);
  if (!failed) return { count };
  return { count, find: { input: counterexample?.[0], why: found ?? 'it cannot be drawn' } };
}

/** The same place in the program. */
function alike(a: string, b: string): boolean {
  const place = (why: string) => /\n\s+at .*/.exec(why)?.[0] ?? why;
  return place(a) === place(b) && a.slice(0, 40) === b.slice(0, 40);
}
