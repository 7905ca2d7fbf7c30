/**
 * `npm run simulate -- --seed N` tells the story of one seed, with the engine's requests beside it;
 * `npm run simulate -- --seeds N --from S` plays many, over all cores, and tells those that fail.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { play, type Played } from './play.ts';
import { shrink } from './shrink.ts';
import { simulate } from './simulate.ts';
import { storyOf, type Story } from './story.ts';
import { beginning } from './words.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    share: { type: 'string' },
  },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const from = whole('from', values.from);
const count = whole('seeds', values.seeds);
if (values.seed !== undefined) await tellSeed(whole('seed', values.seed));
else if (values.share === undefined) await playAll();
else process.send?.(await play(seeds(from, count, whole('share', values.share))));

function whole(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  process.stderr.write(`--${name} ${text}: is no whole number\n`);
  process.exit(2);
}

/** Those of one share: every n-th of them, where n is the number of cores. */
function* seeds(first: number, all: number, share: number): Generator<number> {
  for (let seed = first + share; seed < first + all; seed += availableParallelism()) yield seed;
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

async function playAll(): Promise<void> {
  const began = performance.now();
  const shares = Array.from({ length: availableParallelism() }, (_, share) => playShare(share));
  const played = await Promise.all(shares);
  const sum = (of: (one: Played) => number) => played.reduce((total, one) => total + of(one), 0);
  const failed = played.flatMap((one) => one.failed).toSorted((a, b) => a.seed - b.seed);
  const told = [
    `${sum((one) => one.seeds)} seeds`,
    `${sum((one) => one.runs)} runs`,
    `${sum((one) => one.requests)} requests`,
    `${Math.round(sum((one) => one.hours))} hours`,
    `in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  ];
  print(`${told.join(', ')}: ${failed.length === 0 ? 'all is well' : `${failed.length} fail`}`);
  for (const { seed, wrong } of failed) print(`  --seed ${seed}  ${wrong}`);
  if (failed.length > 0) process.exitCode = 1;
}

/** A core of its own. */
function playShare(share: number): Promise<Played> {
  const args = ['--seeds', `${count}`, '--from', `${from}`, '--share', `${share}`];
  const child = fork(import.meta.filename, args);
  return new Promise((resolve, reject) => {
    child.on('message', (played: Played) => resolve(played));
    child.on('exit', (code) => reject(new Error(`a process ended too early (${code})`)));
    child.on('error', reject);
  });
}
