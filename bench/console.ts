/**
 * Whether the console stays quick: `npm run bench console [people]`. A snapshot of a million people
 * and 10,000 runs with a million changes; 100,000 changes await approval, and 50,000 people have a
 * conflict. Each page is asked for twenty times, and beside a running sync. The floor is a file.
 */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import Database from 'better-sqlite3';
import { main } from '../src/cli.ts';
import { loadConfig } from '../src/config/load-config.ts';
import { pages } from '../src/console/mirror-routes.ts';
import { serveConsole } from '../src/console/console-routes.ts';
import { consoleMirror } from '../src/console/view/console-mirror.ts';
import { systemClock } from '../src/http/system-clock.ts';
import { createServer } from '../src/worker/server/http-server.ts';
import { multiply } from './scale/known.ts';
import { folderOf, rows, sync, type Folder } from './stage/mirror.ts';
import { open } from './stage/open.ts';

const people = Number(process.argv[2] ?? 1_000_000);
const runs = 10_000;
const withheld = 100_000;
const conflicts = 50_000;
const times = 20;

const platform = await open({ limits: ['*=999999999/1'], people: 1 });
const folder = await folderOf(platform.url, 1);
await sync(folder);
multiply(folder.snapshot, people);
await pipeline(Readable.from(rows(people)), createWriteStream(folder.csv));
await sync(folder, '--fast');
fill(folder);

const { url, cookie, close } = await serve(folder);
const get = async (path: string): Promise<{ ms: number; bytes: number; status: number }> => {
  const began = performance.now();
  const answer = await fetch(url + path, { headers: { cookie } });
  const { length } = await answer.text();
  return { ms: performance.now() - began, bytes: length, status: answer.status };
};
const paths = [
  ...pages.flatMap(({ path, nav }) =>
    nav === undefined ? [] : [path === '' ? '/m/bench' : `/m/bench/${path}`],
  ),
  '/m/bench/runs/2020000000000001',
  '/m/bench/problems?class=conflict',
  await firstPerson(),
];
const floor = await measured('/assets/own/icon.svg');
console.log(`the floor, a file: ${floor.ms.toFixed(0)} ms`);
for (const path of paths) {
  const { ms, most, bytes, status } = await measured(path);
  const cells = [`${ms.toFixed(0)} ms`, `${most.toFixed(0)} ms at most`, `${kib(bytes)} KiB`];
  const ratio = `${(ms / floor.ms).toFixed(1)} floors`;
  console.log(
    [path.slice(0, 34).padEnd(34), status, ...cells.map((cell) => cell.padStart(16)), ratio].join(
      '  ',
    ),
  );
}
const alone = await syncing(async () => undefined);
const beside = await syncing(async () => {
  for (const path of paths) await get(path);
});
console.log(
  `a fast run beside the console takes ${(beside / alone).toFixed(2)} times as long as alone`,
);
if (process.argv.includes('keep')) console.log(folder.config);
await close();
if (!process.argv.includes('keep')) await folder.remove();
platform.child.kill();

function kib(bytes: number): string {
  return (bytes / 1024).toFixed(0);
}

/** The page of the first person that the console lists. */
async function firstPerson(): Promise<string> {
  const answer = await fetch(`${url}/m/bench/people`, { headers: { cookie } });
  const found = /href="(\/m\/bench\/people\/[^"]+)"/.exec(await answer.text());
  if (!found?.[1]) throw new Error('the console lists nobody');
  return found[1];
}

async function measured(path: string) {
  const all: Awaited<ReturnType<typeof get>>[] = [];
  for (let nth = 0; nth < times; nth += 1) all.push(await get(path));
  const sorted = all.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const { bytes = 0, status = 0 } = all.at(-1) ?? {};
  return { ms: sorted[times / 2] ?? 0, most: sorted.at(-1) ?? 0, bytes, status };
}

/** The time of a fast run, in milliseconds, while `besides` is done again and again. */
async function syncing(besides: () => Promise<void>): Promise<number> {
  const over = new AbortController();
  const running = sync(folder, '--fast')
    .catch(() => undefined)
    .finally(() => over.abort());
  const began = performance.now();
  while (!over.signal.aborted) {
    await besides();
    await systemClock.sleep(200);
  }
  await running;
  return performance.now() - began;
}

/** Copies the last run, and adds its changes, what awaits approval, and conflicts. */
function fill({ snapshot }: Folder): void {
  const db = new Database(snapshot);
  const n = (count: number): string =>
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})`;
  const last = '(select * from run order by started_at desc limit 1)';
  const now = Date.now();
  db.exec(`
    ${n(runs)} insert into run (id, mode, status, plan, started_at, ended_at, summary)
    select '2020' || printf('%012d', i), mode, status, null, ${now} - i * 240000,
      ${now} - i * 240000 + 5000, summary from ${last}, n;
    ${n(runs)} insert into run_figures
    select '2020' || printf('%012d', i), ${now} - i * 240000, 'fast', 5000 + i % 900, 120, i % 2,
      0.9, 60000 * i, i % 70, '[]', iif(i % 12, null, '{"ch_news":' || (900000 + i) || '}') from n;
    ${n(runs)} insert into route_figures
    select ${now} - i * 240000, value, i % 9, 10, 1000
    from n, json_each('["contacts.list", "contacts.enrol", "contacts.optOut", "batch.create"]');
    ${n(people)} insert into change
      (run, kind, key, op, part, body, phase, state, planned_at, sent_at, ended_at)
    select '2020' || printf('%012d', 1 + i % ${runs}), 'contact', 'person' || i || '@example.com',
      'opt_in', 'ch_news', '{}', 2, 'acked', at, at, at
    from (select i, ${now} - (1 + i % ${runs}) * 240000 at from n);
    insert into held_plan (plan, number, at) values ('5f0c8de1a2b34c56', 1, ${now});
    ${n(withheld)} insert into hold
      (guard, kind, key, op, part, target, body, ids, stated, withdraws, undoes, is_listed, at)
    select iif(i % 2, 'delete', 'opt_out'), 'contact', 'person' || i || '@example.com',
      iif(i % 2, 'delete', 'opt_out'), iif(i % 2, '', 'ch_news'), '', '', '["' || i || '"]',
      1 - i % 2, 0, '', 1, ${now} from n;
    insert into listed select '5f0c8de1a2b34c56', id from hold;
    ${n(conflicts)} insert into problem
      (kind, key, class, part, reason, fix, since, run, cause, about)
    select 'contact', 'person' || i || '@example.com', 'conflict', 'ch_news',
      'The person left this channel on the platform, and the CRM says in.',
      'Ask the person, then run \`crm-mirror resolve\`.', ${now} - i, '2020000000000001',
      'left-channel', 'The person left this channel' from n;
    analyze;`);
  db.close();
}

async function serve({ config }: Folder) {
  const stop = new AbortController();
  const silent = (): void => undefined;
  const shell = {
    env: {},
    print: silent,
    note: silent,
    progress: silent,
    terminal: false,
    interactive: false,
    stop: stop.signal,
    abort: stop.signal,
    call: main,
  };
  const key = randomBytes(16).toString('hex');
  const user = { name: 'bench', role: 'operator', seesAddresses: true } as const;
  const mirror = consoleMirror(loadConfig(config, {}), shell, { clock: systemClock });
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    failed: (error) => console.error(error),
    register: (app) =>
      serveConsole(app, {
        mirrors: () => [mirror],
        access: {
          users: undefined,
          proxy: undefined,
          token: undefined,
          link: { key, user },
          viewersSeeAddresses: false,
          secureHost: undefined,
        },
        clock: systemClock,
        secret: randomBytes(32).toString('hex'),
        random: randomBytes,
        failed: (error) => console.error(error),
      }),
  });
  const address = await server.listen();
  const answer = await fetch(`${address}/sign-in?key=${key}`, { redirect: 'manual' });
  const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  return { url: address, cookie, close: server.close };
}
