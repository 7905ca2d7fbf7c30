/** Takes pictures of the pages that the console and the emulator serve, by a headless browser. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { needed, openPictureStage, program } from './picture-stage.ts';
import { addHistory } from './sample-history.ts';

/** A page of the console, and how it is looked at. */
interface Look {
  /** The path below the mirror, and a link to follow there. */
  path: string;
  follow?: string;
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
}

/**
 * Returns a function that takes a page of the console: runs of two months have ended, and in the
 * last export half of the people have unsubscribed, which awaits approval.
 */
export function takeConsole({ path, follow, ...options }: Look): (file: string) => Promise<void> {
  return async (file) => {
    const stage = await openPictureStage('acme', ['*=2000/10']);
    const running = spawn(
      process.execPath,
      [program, 'console', '-c', stage.config, '--port', '0'],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    const browser = await chromium.launch({
      executablePath: await needed('chromium', 'chromium-browser', 'google-chrome'),
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
    try {
      for (const rows of [rowsOf(0), rowsOf(2), rowsOf(people / 2)]) {
        stage.export(...rows);
        await stage.call('sync');
      }
      addHistory(stage.snapshot, people, Date.now());
      const [link] = await once(running.stdout.setEncoding('utf8'), 'data');
      const { width = 980, height = 760, colorScheme = 'light' } = options;
      const page = await browser.newPage({ viewport: { width, height }, colorScheme });
      await page.goto(String(link).trim());
      await page.goto(new URL(`/m/acme/${path}`, String(link)).href);
      if (follow !== undefined) await page.getByRole('link', { name: follow }).first().click();
      await page.waitForTimeout(500);
      await page.screenshot({ path: file });
    } finally {
      await browser.close();
      running.kill();
      await stage.close();
    }
  };
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

const people = 860;
const names = ['ann', 'ben', 'cara', 'dan', 'eve', 'finn', 'gina', 'hugo'];

/** Returns the rows of the people, of whom the first `left` have unsubscribed. */
function rowsOf(left: number): string[] {
  return Array.from({ length: people }, (_, at) => {
    const name = names[at] ?? `person${at + 1}`;
    const product = at % 9 < 5 ? 'yes' : '';
    return `${at + 1},${name}@example.com,${at < left ? 'no' : 'yes'},${product}`;
  });
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
