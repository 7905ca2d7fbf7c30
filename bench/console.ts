/**
 * Whether the console stays quick: `npm run bench console [people]`. A snapshot of a million people
 * and 10,000 runs with a million changes, of which 20,000 await approval; each page is asked for
 * twenty times, and beside a running sync. The floor is a file.
 */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import Database from 'better-sqlite3';
import { main } from '../src/cli.ts';
import { loadConfig } from '../src/config/load-config.ts';
import { pages } from '../src/console/pages.ts';
import { serveConsole } from '../src/console/console-routes.ts';
import { consoleMirror } from '../src/console/view/console-mirror.ts';
import { systemClock } from '../src/http/system-clock.ts';
import { createServer } from '../src/server/http-server.ts';
import { multiply } from './scale/known.ts';
import { folderOf, rows, sync, type Folder } from './stage/mirror.ts';
import { open } from './stage/open.ts';

const people = Number(process.argv[2] ?? 1_000_000);
const runs = 10_000;
const leaving = 20_000;
const times = 20;

const platform = await open({ limits: ['*=999999999/1'], people: 1 });
const folder = await folderOf(platform.url, 1);
await sync(folder);
multiply(folder.snapshot, people);
await pipeline(Readable.from(rows(people)), createWriteStream(folder.csv));
await sync(folder, '--fast');
await pipeline(Readable.from(unsubscribing()), createWriteStream(folder.csv));
await sync(folder, '--fast').catch(() => undefined);
repeatRuns(folder);

const { url, cookie, close } = await serve(folder);
const get = async (path: string): Promise<{ ms: number; bytes: number; status: number }> => {
  const began = performance.now();
  const answer = await fetch(url + path, { headers: { cookie } });
  const { length } = await answer.text();
  return { ms: performance.now() - began, bytes: length, status: answer.status };
};
const paths = pages.flatMap(({ path, nav }) =>
  nav === undefined ? [] : [path === '' ? '/m/bench' : `/m/bench/${path}`],
);
const floor = await measured('/assets/own/icon.svg');
console.log(`the floor, a file: ${floor.ms.toFixed(0)} ms`);
for (const path of paths) {
  const { ms, most, bytes, status } = await measured(path);
  const cells = [`${ms.toFixed(0)} ms`, `${most.toFixed(0)} ms at most`, `${kib(bytes)} KiB`];
  const ratio = `${(ms / floor.ms).toFixed(1)} floors`;
  console.log(
    [path.padEnd(26), status, ...cells.map((cell) => cell.padStart(16)), ratio].join('  '),
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

/** The same people, of whom the first have unsubscribed. */
function* unsubscribing(): Generator<string> {
  let nth = 0;
  for (const row of rows(people)) {
    yield nth > 0 && nth <= leaving ? row.replace(/,yes$/m, ',no') : row;
    nth += 1;
  }
}

/** Copies the last run, with changes of many people. */
function repeatRuns({ snapshot }: Folder): void {
  const db = new Database(snapshot);
  db.exec(`
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${runs})
    insert into run (id, mode, status, plan, started_at, ended_at, summary)
    select '2020' || printf('%012d', i), mode, status, null, started_at - i * 600000,
      ended_at - i * 600000, summary
    from (select * from run order by started_at desc limit 1), n;
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${people})
    insert into change (run, kind, key, op, part, body, phase, state, planned_at, sent_at, ended_at)
    select '2020' || printf('%012d', 1 + i % ${runs}), 'contact', 'person' || i || '@example.com',
      'opt_in', 'ch_news', '{}', 2, 'acked', 1577836800000, 1577836800000, 1577836800000 from n;
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
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    failed: (error) => console.error(error),
    register: (app) =>
      serveConsole(app, {
        mirrors: [consoleMirror(loadConfig(config, {}), shell, systemClock)],
        access: {
          users: undefined,
          proxy: undefined,
          token: undefined,
          link: { key, user },
          viewersSeeAddresses: false,
        },
        clock: systemClock,
        secret: randomBytes(32).toString('hex'),
        failed: (error) => console.error(error),
      }),
  });
  const address = await server.listen();
  const answer = await fetch(`${address}/sign-in?key=${key}`, { redirect: 'manual' });
  const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  return { url: address, cookie, close: server.close };
}
