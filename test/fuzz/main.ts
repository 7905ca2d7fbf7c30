/**
 * `npm run fuzz` plays generated inputs on all that takes what others write. Each area has a
 * process of its own, so that one that hangs or dies is noticed, whatever it does.
 */
import { fork } from 'node:child_process';
import { parseArgs } from 'node:util';
import { areaNames, keep } from './finds.ts';
import type { Played } from './fuzz.ts';

const help = `Plays generated inputs on all that takes what others write.

  npm run fuzz -- [--inputs N] [--from SEED] [--only AREA]

  --inputs N     how many in all (10000)
  --from SEED    the first seed (1): the same one gives the same inputs
  --only AREA    one of ${areaNames.join(', ')}

What is found is kept below test/fuzz/finds, and replayed by the tests.
Exits with 0 when all is well, with 1 when something was found, with 2 when it is called wrongly.`;

/** No share of inputs takes nearly as long: it hangs. */
const PATIENCE_MS = 180_000;

interface Asked {
  inputs: number;
  from: number;
  only: string | undefined;
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const note = (line: string): void => void process.stderr.write(`${line}\n`);

if (process.send) await playHere(JSON.parse(process.argv[2] ?? ''));
else process.exitCode = await main();

async function main(): Promise<number> {
  const asked = read();
  if (asked === 'help') print(help);
  if (asked === 'help' || asked === undefined) return asked ? 0 : 2;
  const chosen = areaNames.filter((name) => asked.only === undefined || name === asked.only);
  let found = 0;
  for (const [index, name] of chosen.entries()) {
    const share = Math.floor((asked.inputs + index) / chosen.length);
    found += await tell(name, { inputs: share, from: asked.from });
  }
  print(found === 0 ? 'nothing was found' : `${found} found`);
  return found === 0 ? 0 : 1;
}

function read(): Asked | 'help' | undefined {
  const option = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      options: {
        inputs: option,
        from: option,
        only: option,
        help: { type: 'boolean', short: 'h' },
      },
    });
    if (values.help) return 'help';
    const { inputs = '10000', from = '1', only } = values;
    if (only !== undefined && !areaNames.includes(only)) {
      throw new Error(`--only ${only}: there is no such area`);
    }
    return { inputs: whole('inputs', inputs, 1), from: whole('from', from, 0), only };
  } catch (error) {
    note(`${error instanceof Error ? error.message : ''} → npm run fuzz -- --help`);
    return undefined;
  }
}

function whole(name: string, text: string, least: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least) return number;
  throw new Error(`--${name} ${text}: is no whole number from ${least} on`);
}

interface Task {
  name: string;
  inputs: number;
  from: number;
}

/** Plays an area elsewhere, and prints what came of it. Answers how much was found. */
async function tell(name: string, course: Omit<Task, 'name'>): Promise<number> {
  const { played, share, ended } = await playElsewhere({ name, ...course });
  if (!played) {
    const where = share ? `in the ${share.inputs} inputs of seed ${share.seed}` : 'at its start';
    print(`${name}: ${ended} ${where}`);
    return 1;
  }
  print(`${name}: ${played.inputs} inputs, ${played.finds.length} found`);
  for (const { input, why } of played.finds) {
    print(`  ${await keep(name, input)}\n    ${why.replaceAll('\n', '\n    ')}`);
  }
  return played.finds.length;
}

interface Share {
  seed: number;
  inputs: number;
}

type Told = { share: Share } | { played: Played };

async function playElsewhere(task: Task) {
  const child = fork(import.meta.filename, [JSON.stringify(task)], { serialization: 'advanced' });
  const gone = Promise.withResolvers<string>();
  const hangs = () => {
    child.kill('SIGKILL');
    gone.resolve('hangs');
  };
  let timer = setTimeout(hangs, PATIENCE_MS);
  let share: Share | undefined;
  let played: Played | undefined;
  child.on('message', (told: Told) => {
    clearTimeout(timer);
    timer = setTimeout(hangs, PATIENCE_MS);
    if ('played' in told) played = told.played;
    else share = told.share;
  });
  child.on('exit', (code, signal) => gone.resolve(`its process ended (${signal ?? code})`));
  const ended = await gone.promise;
  clearTimeout(timer);
  return { played, share, ended };
}

async function playHere({ name, inputs, from }: Task): Promise<void> {
  const send = (told: Told) => void process.send?.(told);
  // Loaded only where it is played.
  const { areas, play } = await import('./fuzz.ts');
  const area = areas.find((one) => one.name === name);
  if (!area) throw new Error(`there is no area ${name}`);
  send({ played: await play(area, { inputs, from, begins: (share) => send({ share }) }) });
  process.disconnect();
}
