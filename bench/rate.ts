/**
 * How fast a limit is used up, and how rarely it is overdrawn, over real HTTP:
 * `npm run bench rate [word …]`. The words choose rows: clients (ours, p-limit, bottleneck,
 * p-throttle), company (alone, foreign, two, two-redis, four-redis), algorithms, and `reserve` and
 * `sync`, which are rows of their own. Without words: all of it.
 *
 * Each row has an emulator and clients in processes of their own. The algorithms are measured side
 * by side: one after the other they would take ten minutes, nearly all of it waiting. Those whose
 * processes share a budget are measured one after the other: so many processes at once would
 * measure the machine.
 */
import type { ChildProcess } from 'node:child_process';
import pLimit from 'p-limit';
import { algorithms, type Limit } from '../src/emulator/limits/route-limits.ts';
import { playFleet } from '../test/support/rate-limit/limit-scenario.ts';
import { leastMs } from '../test/support/rate-limit/limit-servers.ts';
import { anyRedis } from '../test/support/redis.ts';
import type { ClientDone, ClientTask } from './rate/client.ts';
import { clients } from './rate/clients.ts';
import { ask, begin } from './stage/child.ts';
import { folderOf, sync } from './stage/mirror.ts';
import type { Latency } from './stage/network.ts';
import { open } from './stage/open.ts';
import type { Row } from './stage/row.ts';

const limit: Limit = { requests: 200, windowSeconds: 2 };
const requests = 1_950;
const latency: Latency = [20, 50];

interface Company {
  name: string;
  /** That share the requests, and know nothing of each other. */
  processes: number;
  /** Share of the limit that another program takes, evenly, whatever happens. */
  foreign: number;
  /** They share one budget, through Redis: only ours can. */
  shares?: true;
}

const companies: readonly Company[] = [
  { name: 'alone', processes: 1, foreign: 0 },
  { name: 'foreign', processes: 1, foreign: 0.3 },
  { name: 'two', processes: 2, foreign: 0 },
  { name: 'two-redis', processes: 2, foreign: 0, shares: true },
  { name: 'four-redis', processes: 4, foreign: 0, shares: true },
];

interface Measurement {
  client: string;
  company: Company;
  algorithm: string;
  reserve: number;
}

interface Measured {
  ratio: number;
  refusedShare: number;
  p50Ms: number;
  p99Ms: number;
  left: number[];
}

/** Started when it is first needed. */
let started: ReturnType<typeof anyRedis> | undefined;

const known = [...Object.keys(clients), ...companies.map(({ name }) => name), ...names(algorithms)];

export async function main(words: readonly string[]): Promise<void> {
  const strange = words.filter((word) => ![...known, 'reserve', 'sync'].includes(word));
  if (strange.length > 0) {
    console.error(`${strange.join(', ')}: choose from ${[...known, 'reserve', 'sync'].join(', ')}`);
    process.exitCode = 2;
    return;
  }
  const chosen = words.filter((word) => known.includes(word));
  const isMatrix = words.length === 0 || chosen.length > 0;
  if (isMatrix) for (const company of companies.filter(among(chosen))) await show(company, chosen);
  if (words.length === 0 || words.includes('reserve')) await showReserve();
  if (words.length === 0 || words.includes('sync')) await showSync();
  await (await started)?.close();
}

/** A row for each client in a company: over all algorithms, or those that are chosen. */
export async function rate(name: string, ...chosen: string[]): Promise<Row[]> {
  const company = companies.find((one) => one.name === name);
  if (!company) throw new Error(`${name} is no company`);
  const rows: Row[] = [];
  for await (const { client, measured } of compare(company, chosen)) {
    const ratios = measured.map(({ ratio }) => ratio);
    const refused = measured.map(({ refusedShare }) => refusedShare * 100);
    rows.push({
      what: `${requests} requests, ${limit.requests} in ${limit.windowSeconds} s, ${name}: ${client}`,
      result: `${range(refused, 1)} % refused`,
      beside: 'the least time',
      ratio: range(ratios, 2),
    });
  }
  await (await started)?.close();
  started = undefined;
  return rows;
}

/** What a budget that many processes share costs in Redis, in virtual time. */
export async function shared(processes = 200): Promise<Row[]> {
  const job = { processes, limit: { requests: 20, windowSeconds: 1 }, requests: 390, seed: 2 };
  const { ratio, refused, trips } = await playFleet({ ...job, algorithm: 'gcra' });
  return [
    {
      what: `${processes} processes share 20 in 1 s, in virtual time`,
      result: `${trips.toFixed(1)} round trips to Redis a request, ${refused} refused`,
      beside: 'the least time',
      ratio: ratio.toFixed(2),
    },
  ];
}

function range(values: readonly number[], digits: number): string {
  const [least, most] = [Math.min(...values).toFixed(digits), Math.max(...values).toFixed(digits)];
  return least === most ? least : `${least} to ${most}`;
}

/** Chosen when it is named, or when nothing of its sort is. */
function among(
  chosen: readonly string[],
): <T extends { name: string }>(one: T, _: number, all: readonly T[]) => boolean {
  return ({ name }, _, all) => {
    const isNamed = all.some((other) => chosen.includes(other.name));
    return !isNamed || chosen.includes(name);
  };
}

function names(all: readonly { name: string }[]): string[] {
  return all.map(({ name }) => name);
}

/** One table: a line for each client, all algorithms side by side. */
async function show(company: Company, chosen: readonly string[]): Promise<void> {
  const counted = names(algorithms.filter(among(chosen)));
  console.log(`\n| ${company.name} | ${counted.join(' | ')} |`);
  console.log(`|---${'|---'.repeat(counted.length)}|`);
  for await (const { client, measured } of compare(company, chosen)) {
    console.log(`| ${client} | ${measured.map(shown).join(' | ')} |`);
  }
}

async function* compare(company: Company, chosen: readonly string[]) {
  const counted = names(algorithms.filter(among(chosen)));
  const all = Object.keys(clients).map((name) => ({ name }));
  for (const client of names(all.filter(among(chosen)))) {
    if (company.shares && client !== 'ours') continue;
    const rows = counted.map((algorithm) => ({ client, company, algorithm, reserve: 0 }));
    const atOnce = pLimit(company.shares ? 1 : rows.length);
    yield { client, measured: await atOnce.map(rows, measure) };
  }
}

function shown({ ratio, refusedShare, p50Ms, p99Ms }: Measured): string {
  const trips = `${Math.round(p50Ms)}/${Math.round(p99Ms)} ms`;
  return `${ratio.toFixed(2)}, ${(refusedShare * 100).toFixed(1)} %, ${trips}`;
}

/** What is left to others of each window, by its last answer. */
async function showReserve(): Promise<void> {
  const [company] = companies;
  if (!company) return;
  const row = { client: 'ours', company, algorithm: 'fixed', reserve: 0.1 };
  const measured = await measure(row);
  const least: number[] = [];
  for (const [at, left] of measured.left.entries()) {
    const isNewWindow = at === 0 || left > (measured.left[at - 1] ?? 0) + limit.requests / 4;
    if (isNewWindow) least.push(left);
    else least.push(Math.min(left, least.pop() ?? left));
  }
  console.log(`\nreserve 0.1, fixed, alone: ${shown(measured)}`);
  console.log(`left in each window of ${limit.requests}: ${least.join(' ')}`);
}

/** Enrolments of people the platform does not know, by the command line, from a CSV file. */
async function showSync(): Promise<void> {
  const task = {
    limits: ['*=1000000/1', limitOf('contacts.enrol')],
    algorithm: 'fixed',
    latency,
    people: 0,
  };
  const { url, child } = await open(task);
  const folder = await folderOf(url, requests);
  const { beganMs, endedMs, summary } = await sync(folder);
  await folder.remove();
  child.kill();
  const { 'contacts.enrol': sent = 0 } = summary.requests.byRoute;
  const refused = summary.requests.rateLimited;
  const least = leastMs('fixed', { limit, requests, epochMs: beganMs });
  const ratio = (endedMs - beganMs) / least;
  const seconds = (endedMs - beganMs) / 1000;
  console.log(
    `\nsync of ${requests} first enrolments, fixed, the whole process: ${seconds.toFixed(1)} s, ` +
      `${ratio.toFixed(2)} of the least; ${sent} enrolments sent, ${refused} refused ` +
      `(${((refused / sent) * 100).toFixed(1)} %)`,
  );
}

async function measure(row: Measurement): Promise<Measured> {
  const { client, company, algorithm, reserve } = row;
  const platform = await open({ limits: [limitOf('contacts.retrieve')], algorithm, latency });
  const redis = company.shares && (await redisUrl());
  const task = { url: platform.url, client, limit, reserve, redis };
  const own: ClientTask[] = Array.from({ length: company.processes }, (_, at) => ({
    ...task,
    requests: Math.floor((requests + at) / company.processes),
  }));
  const taken = { ...limit, requests: limit.requests * company.foreign };
  const foreign: ClientTask = { ...task, client: undefined, limit: taken, requests: 0 };
  const [others, ...ours] = await Promise.all([foreign, ...own].map(ready));
  const done = Promise.all(ours.map(ask<ClientDone>));
  for (const child of company.foreign > 0 ? [others, ...ours] : ours) child?.send('go');
  const all = await done;
  for (const child of [others, ...ours, platform.child]) child?.kill();
  return summed(all, row);
}

async function redisUrl(): Promise<string> {
  started ??= anyRedis();
  return (await started).url;
}

function summed(
  done: readonly ClientDone[],
  { company, algorithm, reserve }: Measurement,
): Measured {
  const beganMs = Math.min(...done.map((one) => one.beganMs));
  const endedMs = Math.max(...done.map((one) => one.endedMs));
  const share = 1 - company.foreign - reserve;
  const rest = { ...limit, requests: Math.floor(limit.requests * share) };
  const trips = done.flatMap(({ tripsMs }) => tripsMs).toSorted((a, b) => a - b);
  const at = (part: number): number => trips[Math.floor(part * (trips.length - 1))] ?? 0;
  const refused = done.reduce((sum, one) => sum + one.refused, 0);
  return {
    ratio: (endedMs - beganMs) / leastMs(algorithm, { limit: rest, requests, epochMs: beganMs }),
    refusedShare: refused / trips.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    left: done.flatMap(({ left }) => left),
  };
}

function limitOf(route: string): string {
  return `${route}=${limit.requests}/${limit.windowSeconds}`;
}

async function ready(task: ClientTask): Promise<ChildProcess> {
  const child = begin('rate/client', task);
  await ask(child);
  return child;
}
