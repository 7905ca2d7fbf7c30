/**
 * Whether size matters: `npm run bench scale [word …] [people]`, with words fast, full, enrol and
 * log; without them all four. What is measured is the command line, in ratios to what it cannot do
 * without, measured in the same minute.
 *
 *   fast   nothing changed: the floor is csv-parse, one keyed insert a row and one join
 *   full   nothing changed: the floor is a bare undici loop over the same pages
 *   enrol  everybody is new, and nothing limits it: beside autocannon on the same route
 *   log    the same: beside first loads without the log of requests, by turns
 */
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { appendFile, utimes } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BareTask } from './scale/bare.ts';
import type { FloorTask } from './scale/floor.ts';
import { multiply } from './scale/known.ts';
import type { LoadTask } from './scale/load.ts';
import { ask, begin } from './stage/child.ts';
import { folderOf, rows, sync, type Folder, type Ran } from './stage/mirror.ts';
import { open } from './stage/open.ts';
import type { Traffic } from './stage/platform.ts';

const unlimited = ['*=999999999/1'];
const parts = { fast, full, enrol, log };
const isPart = (word: string): word is keyof typeof parts => Object.hasOwn(parts, word);

const words = process.argv.slice(2);
const size = words.map(Number).find((number) => number > 0);
const chosen = words.filter(isPart);
if (words.length > chosen.length + (size === undefined ? 0 : 1)) {
  console.error(`choose from ${Object.keys(parts).join(', ')}, and a number of people`);
  process.exitCode = 2;
} else {
  for (const part of chosen.length > 0 ? chosen : Object.keys(parts).filter(isPart)) {
    await parts[part](size);
  }
}

async function fast(people = 1_000_000): Promise<void> {
  const few = await unchanged(people / 10);
  const many = await unchanged(people);
  tell(`a fast run over ${people} unchanged people`, many.ran, [
    ratio('time', many.ran.endedMs - many.ran.beganMs, { floor: many.floorMs, unit: 'ms' }),
    ratio('memory', many.ran.peakMb, { floor: few.ran.peakMb, unit: 'MB' }),
  ]);
}

/** The floor first and the run next, on the same file. */
async function unchanged(people: number): Promise<{ ran: Ran; floorMs: number }> {
  const platform = await open({ limits: unlimited, people: 1 });
  const folder = await folderOf(platform.url, 1);
  await sync(folder);
  multiply(folder.snapshot, people);
  await pipeline(Readable.from(rows(people)), createWriteStream(folder.csv));
  await utimes(folder.csv, 2, 2);
  // The first one learns under which id of the CRM each of them stands.
  await sync(folder, '--fast');
  const task: FloorTask = folder;
  const floorMs = await outcomeOf<number>('scale/floor', task);
  const ran = await sync(folder, '--fast');
  await close(folder, platform.child);
  return { ran, floorMs };
}

async function full(people = 100_000): Promise<void> {
  const platform = await open({ limits: unlimited, people });
  const folder = await folderOf(platform.url, people);
  await sync(folder);
  const pages = Math.ceil(people / 100) + 1;
  const task: BareTask = { url: platform.url, pages, atOnce: 16 };
  // Once for nothing: the emulator answers a list that it has answered before in half the time.
  await outcomeOf('scale/bare', task);
  const bare = await outcomeOf<{ ms: number }>('scale/bare', task);
  await traffic(platform.child);
  const ran = await sync(folder);
  const listing = (await traffic(platform.child))['GET /api/contacts/list'];
  await close(folder, platform.child);
  tell(`a full run over ${people} unchanged people`, ran, [
    ratio('listing', listing?.ms ?? 0, { floor: bare.ms, unit: 'ms' }),
    `${ran.summary.requests.total} requests for ${pages - 1} pages`,
  ]);
}

/** Of few people and of more: autocannon gains more than we do by having warmed up. */
async function enrol(people?: number): Promise<void> {
  for (const so of people === undefined ? [1_950, 10_000] : [people]) await firstLoad(so);
}

async function firstLoad(people: number): Promise<void> {
  const route = 'POST /api/contacts/channel';
  const loaded = await open({ limits: unlimited, people: 0 });
  const task: LoadTask = { url: loaded.url, people, connections: 32 };
  await outcomeOf('scale/load', task);
  const load = (await traffic(loaded.child))[route];
  loaded.child.kill();

  const platform = await open({ limits: unlimited, people: 0 });
  const folder = await folderOf(platform.url, people);
  const ran = await sync(folder);
  const applied = (await traffic(platform.child))[route];
  await close(folder, platform.child);
  const perSecond = (one = { requests: 0, ms: 1 }): number => (one.requests * 1000) / one.ms;
  const floor = perSecond(load);
  tell(`a first load of ${people} people`, ran, [
    ratio('enrolments', perSecond(applied), { floor, unit: '/s' }),
  ]);
}

/** The medians of first loads with the log of requests and without it. */
async function log(people = 5_000): Promise<void> {
  const turns = 5;
  const [logged, bare]: [Ran[], Ran[]] = [[], []];
  for (let turn = 0; turn < turns * 2; turn += 1) {
    const isLogged = turn % 2 === 0;
    const platform = await open({ limits: unlimited, people: 0 });
    const folder = await folderOf(platform.url, people);
    if (!isLogged) await appendFile(folder.config, 'requests: { log: off }\n');
    (isLogged ? logged : bare).push(await sync(folder));
    await close(folder, platform.child);
  }
  const of = (value: (ran: Ran) => number) =>
    [median(logged.map(value)), { floor: median(bare.map(value)), unit: 'ms' }] as const;
  const [ran] = logged;
  if (!ran) return;
  tell(`a first load of ${people} people with the log of requests, and without it`, ran, [
    ratio('time', ...of(({ summary }) => summary.ms)),
    ratio('computing', ...of(({ computedMs }) => computedMs)),
  ]);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function ratio(what: string, value: number, of: { floor: number; unit: string }): string {
  const { floor, unit } = of;
  const [mine, least] = [Math.round(value), Math.round(floor)];
  return `${what} ${mine} ${unit} / ${least} ${unit} = ${(value / floor).toFixed(2)}`;
}

function tell(what: string, ran: Ran, lines: readonly string[]): void {
  const { peakMb, longestMs, busiestMs } = ran;
  console.log(`\n${what}`);
  for (const line of lines) console.log(`  ${line}`);
  console.log(`  at most ${Math.round(peakMb)} MB`);
  console.log(
    `  the event loop stood still for at most ${Math.round(longestMs)} ms, ` +
      `computing ${Math.round(busiestMs)} ms of it`,
  );
}

async function close(folder: Folder, child: ChildProcess): Promise<void> {
  child.kill();
  await folder.remove();
}

async function traffic(child: ChildProcess): Promise<Traffic> {
  child.send('report');
  return ask<Traffic>(child);
}

async function outcomeOf<T>(name: string, task: object): Promise<T> {
  const child = begin(name, task);
  const outcome = await ask<T>(child);
  child.kill();
  return outcome;
}
