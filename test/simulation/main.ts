/**
 * `npm run simulate -- --seed N` tells the story of one seed, with the engine's requests beside it;
 * `npm run simulate -- --seeds N --from S` plays many, over all cores, and tells those that fail.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { play, type Failure, type Played } from './play.ts';
import { shrink } from './shrink.ts';
import { simulate } from './simulate.ts';
import { storyOf, type Story } from './story.ts';
import { beginning } from './words.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const asked = read();
if (asked === undefined) process.exitCode = 2;
else if (asked.seed !== undefined) await tellSeed(asked.seed);
else if (asked.share === undefined) await playAll(asked);
else process.send?.(await play(seeds(asked, asked.share), (failure) => process.send?.(failure)));

interface Asked {
  seed?: number | undefined;
  seeds: number;
  from: number;
  /** Which share of them this process plays. */
  share?: number | undefined;
}

function read(): Asked | undefined {
  const option = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      options: { seed: option, seeds: option, from: option, share: option },
    });
    const { seeds: count = '1000', from = '1' } = values;
    return {
      seed: values.seed === undefined ? undefined : whole('seed', values.seed),
      seeds: whole('seeds', count),
      from: whole('from', from),
      share: values.share === undefined ? undefined : whole('share', values.share),
    };
  } catch (error) {
    const usage = 'use --seed N, or --seeds N --from S';
    process.stderr.write(`${error instanceof Error ? error.message : ''} → ${usage}\n`);
    return undefined;
  }
}

function whole(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${name} ${text}: is no whole number`);
}

/** Those of one share: every n-th of them, where n is the number of cores. */
function* seeds({ from, seeds: count }: Asked, share: number): Generator<number> {
  for (let seed = from + share; seed < from + count; seed += availableParallelism()) yield seed;
}

/** At its shortest, when it fails. */
async function tellSeed(seed: number): Promise<void> {
  const story = storyOf(seed);
  const { wrong } = await simulate(story);
  const shortest = wrong && (await shrink(seed));
  if (shortest) print(`Seed ${seed} fails. At its shortest: ${JSON.stringify(shortest)}\n`);
  await tell(shortest ?? story);
}

async function tell(story: Story): Promise<void> {
  for (const line of beginning(story)) print(line);
  const { wrong } = await simulate(story, { log: print });
  if (!wrong) return print('All is well.');
  print(wrong.name === 'Wrong' ? `Wrong: ${wrong.message}.` : (wrong.stack ?? wrong.message));
  process.exitCode = 1;
}

async function playAll({ from, seeds: count }: Asked): Promise<void> {
  const began = performance.now();
  const failures: Failure[] = [];
  const heard = (failure: Failure): void => {
    failures.push(failure);
    print(`  --seed ${failure.seed}  ${failure.wrong}`);
  };
  const shares = Array.from({ length: availableParallelism() }, (_, share) =>
    playShare({ from, seeds: count, share }, heard),
  );
  const played = await Promise.all(shares);
  const sum = (of: (one: Played) => number) => played.reduce((total, one) => total + of(one), 0);
  const told = [
    `${sum((one) => one.seeds)} seeds`,
    `${sum((one) => one.runs)} runs`,
    `${sum((one) => one.requests)} requests`,
    `${Math.round(sum((one) => one.hours))} hours`,
    `in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  ];
  const verdict = failures.length === 0 ? 'all is well' : `${failures.length} fail`;
  print(`${told.join(', ')}: ${verdict}`);
  const [first] = failures;
  if (first) await tellSeed(first.seed);
}

/** A core of its own. */
function playShare(
  { from, seeds: count, share }: Asked & { share: number },
  heard: (failure: Failure) => void,
): Promise<Played> {
  const args = ['--seeds', `${count}`, '--from', `${from}`, '--share', `${share}`];
  const child = fork(import.meta.filename, args);
  return new Promise((resolve, reject) => {
    child.on('message', (message: Played | Failure) => {
      if ('wrong' in message) heard(message);
      else resolve(message);
    });
    child.on('exit', (code) => reject(new Error(`a process ended too early (${code})`)));
    child.on('error', reject);
  });
}
