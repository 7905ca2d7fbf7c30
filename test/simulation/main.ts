/**
 * `npm run simulate -- --seed N` tells the story of one seed, with the engine's requests beside it;
 * `npm run simulate -- --seeds N --from S` plays many, over all cores, and tells those that fail.
 */
import { parseArgs } from 'node:util';
import { createProgress } from './progress.ts';
import { shrink } from './story/shrink.ts';
import { simulate } from './simulate.ts';
import { playAll } from './parallel-play.ts';
import type { Story } from './story/story.ts';
import { kinds, type StoryKind, storyKinds, storyOfKind } from './story/story-kinds.ts';
import { beginning } from './story/story-text.ts';

const help = `Plays the whole engine against the whole emulator, in virtual time, from seeds.

  npm run simulate -- [--seeds N] [--from S]   play N seeds (1000), from S on (1), over all cores
  npm run simulate -- --undo …                 the same of stories in which runs are undone
  npm run simulate -- --canary …               the same of stories with a canary
  npm run simulate -- --restore …              the same of stories with a restored snapshot
  npm run simulate -- --seed N                 tell one of them, with its requests; one that fails
                                               is shrunk to its shortest story first

Exits with 0 when all is well, with 1 when a seed fails, with 2 when it is called wrongly.`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const note = (line: string): void => void process.stderr.write(`${line}\n`);

// A reader that stops (head, less) has seen enough.
process.on('uncaughtException', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') note(error.stack ?? error.message);
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

type Asked = { kind: StoryKind } & ({ seed: number } | { seeds: number; from: number });

const asked = read();
if (asked === 'help') print(help);
else if (asked === undefined) process.exitCode = 2;
else if ('seed' in asked) await tellSeed(asked.seed, asked.kind);
else await tellAll(asked);

function read(): Asked | 'help' | undefined {
  const option = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const help = { type: 'boolean', short: 'h' } as const;
  try {
    const { values } = parseArgs({
      options: {
        seed: option,
        seeds: option,
        from: option,
        undo: flag,
        canary: flag,
        restore: flag,
        help,
      },
    });
    const { seed, seeds = '1000', from = '1' } = values;
    const kind = kinds.find((one) => values[one]) ?? 'plain';
    if (values.help) return 'help';
    if (seed === undefined)
      return { seeds: whole('seeds', seeds, 1), from: whole('from', from), kind };
    if (values.seeds === undefined && values.from === undefined)
      return { seed: whole('seed', seed), kind };
    throw new Error('--seed tells one story, and --seeds and --from play many');
  } catch (error) {
    note(`${error instanceof Error ? error.message : ''} → use --seed N, or --seeds N --from S`);
    return undefined;
  }
}

function whole(name: string, text: string, least = 0): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new Error(`--${name} ${text}: is no whole number from ${least} on`);
}

async function tellAll(asked: Extract<Asked, { seeds: number }>): Promise<void> {
  const progress = createProgress(process.stderr, asked.seeds, () => performance.now());
  const { failures, lines } = await playAll(asked, {
    seed: progress.seed,
    failure({ seed, wrong }) {
      progress.clear();
      progress.failure();
      const how = asked.kind === 'plain' ? '--seed' : `--${asked.kind} --seed`;
      print(`Seed ${seed} fails: ${wrong}  (npm run simulate -- ${how} ${seed})`);
    },
  });
  progress.clear();
  for (const line of lines) print(line);
  const [first] = failures;
  if (!first) return;
  process.exitCode = 1;
  await tellSeed(first.seed, asked.kind);
}

/** At its shortest, when it fails. */
async function tellSeed(seed: number, kind: StoryKind): Promise<void> {
  const story = storyOfKind(kind, seed);
  const { wrong } = await simulate(story);
  if (!wrong) return tell(story);
  note(`Seed ${seed} fails. Looking for its shortest story, for two minutes at most …`);
  const shortest = (await shrink(seed, {}, storyKinds[kind])) ?? story;
  print(`Seed ${seed}, at its shortest: ${JSON.stringify(shortest)}\n`);
  await tell(shortest);
}

async function tell(story: Story): Promise<void> {
  for (const line of beginning(story)) print(line);
  const { wrong } = await simulate(story, { log: print });
  if (!wrong) return print('All is well.');
  print(wrong.name === 'Wrong' ? `Wrong: ${wrong.message}.` : (wrong.stack ?? wrong.message));
  process.exitCode = 1;
}
