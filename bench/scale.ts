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
import { compared, median, printTable, type Row } from './stage/row.ts';

const unlimited = ['*=999999999/1'];
const parts = { fast, full, enrol, log };
const isPart = (word: string): word is keyof typeof parts => Object.hasOwn(parts, word);

export async function main(words: readonly string[]): Promise<void> {
  const size = words.map(Number).find((number) => number > 0);
  const chosen = words.filter(isPart);
  if (words.length > chosen.length + (size === undefined ? 0 : 1)) {
    console.error(`choose from ${Object.keys(parts).join(', ')}, and a number of people`);
    process.exitCode = 2;
    return;
  }
  const all = chosen.length > 0 ? chosen : Object.keys(parts).filter(isPart);
  await printTable(all.map((part) => async () => parts[part](size)));
}

export async function fast(people = 1_000_000): Promise<Row[]> {
  const few = await unchanged(people / 10);
  const { ran, floorMs } = await unchanged(people);
  const peer = 'csv-parse, an insert a row, a join';
  const wholeMs = ran.endedMs - ran.beganMs;
  const fewer = { least: few.ran.peakMb, unit: 'MB', peer: `${people / 10} people` };
  return [
    compared(`fast run, ${people} unchanged`, wholeMs, { least: floorMs, unit: 'ms', peer }),
    compared('its memory', ran.peakMb, fewer),
    standstill(ran),
  ];
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

export async function full(people = 100_000): Promise<Row[]> {
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
  const least = { least: bare.ms, unit: 'ms', peer: 'undici and JSON.parse' };
  return [
    compared(`full run, ${people} unchanged: its listing`, listing?.ms ?? 0, least),
    { what: 'its requests', result: `${ran.summary.requests.total} for ${pages - 1} pages` },
    standstill(ran),
  ];
}

/** Of few people and of more: autocannon gains more than we do by having warmed up. */
export async function enrol(people?: number): Promise<Row[]> {
  const sizes = people === undefined ? [1_950, 10_000] : [people];
  const rows: Row[] = [];
  for (const size of sizes) rows.push(...(await firstLoad(size)));
  return rows;
}

async function firstLoad(people: number): Promise<Row[]> {
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
  const least = { least: perSecond(load), unit: 'a second', peer: 'autocannon' };
  return [
    compared(`first load, ${people} people, no limit`, perSecond(applied), least),
    standstill(ran),
  ];
}

/** The medians of first loads with the log of requests and without it. */
async function log(people = 5_000): Promise<Row[]> {
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
  const what = `first load, ${people} people, with the log of requests`;
  const beside = (name: string, value: (ran: Ran) => number): Row => {
    const least = { least: median(bare.map(value)), unit: 'ms', peer: 'without it' };
    return compared(`${what}: ${name}`, median(logged.map(value)), least);
  };
  return [
    beside('time', ({ summary }) => summary.ms),
    beside('computing', ({ computedMs }) => computedMs),
  ];
}

/** How large the process was, and for how long its event loop stood still. */
function standstill({ peakMb, longestMs, busiestMs }: Ran): Row {
  const [longest, busiest] = [Math.round(longestMs), Math.round(busiestMs)];
  return {
    what: 'its process',
    result: `${Math.round(peakMb)} MB; stood still for ${longest} ms, computing ${busiest} of it`,
  };
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
