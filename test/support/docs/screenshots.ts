/** Takes pictures of the pages that the worker and the emulator serve, by a headless browser. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../port.ts';
import { ownRedis } from '../redis.ts';
import { needed, openPictureStage, program, type PictureStage } from './picture-stage.ts';

const schedule = "schedule: { full: '0 3 * * *', fast: '*/5 * * * *', timezone: Europe/Berlin }";
const patienceMs = 60_000;

/** Takes the worker's status page: one mirror awaits an approval, the other one is well. */
export async function takeStatusPage(file: string): Promise<void> {
  const redis = await ownRedis();
  const port = await freePort();
  const shared = [`redis: ${redis.url}`, `server: { port: ${port} }`, schedule];
  const acme = await openPictureStage('acme', shared);
  const shop = await openPictureStage('shop', shared);
  const configs = ['-c', acme.config, '-c', shop.config];
  try {
    await fill(acme);
    await fill(shop);
    acme.export(...rowsOf('no'));
    await acme.call('sync');
    const worker = spawn(process.execPath, [program, 'worker', ...configs], { stdio: 'ignore' });
    try {
      await answers(`http://127.0.0.1:${port}/readyz`);
      await take(`http://127.0.0.1:${port}/`, file, { width: 980, height: 950 });
    } finally {
      worker.kill();
      await once(worker, 'exit');
    }
  } finally {
    await acme.close();
    await shop.close();
    await redis.close();
  }
}

/** Takes the page on which the emulator describes the API. */
export async function takeEmulatorPage(file: string): Promise<void> {
  const stage = await openPictureStage('acme');
  try {
    await take(`${stage.url}/docs`, file, { width: 980, height: 752 });
  } finally {
    await stage.close();
  }
}

const people = ['ann', 'ben', 'cara', 'dan', 'eve', 'finn', 'gina', 'hugo'];

function rowsOf(newsletter: string): string[] {
  return people.map((name, at) => `${at + 1},${name}@example.com,${newsletter},yes`);
}

async function fill(stage: PictureStage): Promise<void> {
  stage.export(...rowsOf('yes'));
  await stage.call('sync');
}

async function answers(url: string): Promise<void> {
  const until = Date.now() + patienceMs;
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    if (Date.now() > until) throw new Error(`${url} does not answer`);
    await pause(100);
  }
}

async function take(
  url: string,
  file: string,
  { width, height }: { width: number; height: number },
): Promise<void> {
  const browser = await needed('chromium', 'chromium-browser', 'google-chrome');
  const profile = mkdtempSync(join(tmpdir(), 'crm-mirror-browser-'));
  // As root a browser does not start with its sandbox; what it shows here is our own.
  const safe = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
  const page = ['--hide-scrollbars', `--window-size=${width},${height}`, `--screenshot=${file}`];
  const options = ['--headless', ...safe, `--user-data-dir=${profile}`, ...page, url];
  try {
    const [code] = await once(spawn(browser, options, { stdio: 'ignore' }), 'exit');
    if (code !== 0) throw new Error(`${browser} could not take ${url}`);
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
}
