/** A console of one mirror, served within this process, and a browser that looks at it. */
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { main } from '../../../src/cli.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import type { AccessRules, User } from '../../../src/console/access/visitor.ts';
import type { ConsoleFleet } from '../../../src/console/pages/fleet.ts';
import { serveConsole } from '../../../src/console/console-routes.ts';
import { type ConsoleMirror, consoleMirror } from '../../../src/console/view/console-mirror.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { createServer } from '../../../src/server/http-server.ts';
import { silentShell } from '../commands/silent-shell.ts';

const operator: User = { name: 'olga', role: 'operator', seesAddresses: true };
export const viewer: User = { name: 'vera', role: 'viewer', seesAddresses: false };

export interface RunningConsole {
  url: string;
  /** The address that signs in the user of the link. */
  link: string;
  /** Bugs it met. */
  failures: unknown[];
  /** Every route it serves, such as `POST /m/:mirror/do/pause`. */
  routes: string[];
  /** What it shows; a test may take mirrors away. */
  mirrors: ConsoleMirror[];
}

/** Serves the console of the mirrors until the test ends; by default the link is an operator's. */
export async function startConsole(
  files: readonly string[],
  access: Partial<AccessRules> & { user?: User } = {},
  fleets: readonly ConsoleFleet[] = [],
): Promise<RunningConsole> {
  const failures: unknown[] = [];
  const routes: string[] = [];
  const failed = (error: unknown): void => void failures.push(error);
  const stop = new AbortController();
  const shell = {
    ...silentShell,
    stop: stop.signal,
    abort: stop.signal,
    call: main,
  };
  const { user = operator, ...rules } = access;
  const key = 'a-key-of-this-test';
  const mirrors = files.map((file) =>
    consoleMirror(loadConfig(file, {}), shell, { clock: systemClock }),
  );
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    failed,
    register(app) {
      app.addHook('onRoute', ({ method, url: path }) => {
        for (const name of [method].flat()) routes.push(`${name} ${path}`);
      });
      serveConsole(app, {
        mirrors: () => mirrors,
        fleets: () => fleets,
        access: {
          users: undefined,
          proxy: undefined,
          token: undefined,
          link: { key, user },
          viewersSeeAddresses: false,
          secureHost: undefined,
          ...rules,
        },
        clock: systemClock,
        secret: '00'.repeat(32),
        failed,
      });
    },
  });
  const url = await server.listen();
  onTestFinished(async () => server.close());
  return { url, link: `${url}/sign-in?key=${key}`, failures, routes, mirrors };
}

export interface Looking {
  page: Page;
  /** What went wrong in the browser: errors on its console, requests to other hosts. */
  complaints: string[];
}

export interface BrowserOptions {
  width?: number;
  colorScheme?: 'light' | 'dark';
  /** The user whom a proxy names, in the header x-user; by default the user of the link. */
  user?: string;
}

let browser: Promise<Browser> | undefined;

/** Only what hangs for good reaches this, on a busy machine too. */
const LONGEST_MS = 120_000;

/**
 * Opens a page in a real browser that is closed with the last test. The link signs in, unless a
 * proxy names the user.
 */
export async function look(
  { url, link }: RunningConsole,
  { width = 1200, colorScheme = 'light', user }: BrowserOptions = {},
): Promise<Looking> {
  browser ??= chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: LONGEST_MS,
  });
  const context = await (
    await browser
  ).newContext({
    viewport: { width, height: 900 },
    colorScheme,
    baseURL: url,
    ...(user !== undefined && { extraHTTPHeaders: { 'x-user': user } }),
  });
  onTestFinished(async () => context.close());
  context.setDefaultTimeout(LONGEST_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`)) complaints.push(`asks ${request.url()}`);
  });
  await page.goto(user === undefined ? link : url);
  return { page, complaints };
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** Returns what axe-core finds serious on a page, and whether the page is wider than the window. */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(`axe.run().then(({ violations }) => {
    const serious = violations.filter(({ impact }) => /serious|critical/.test(impact));
    const { scrollWidth } = document.documentElement;
    return [
      ...serious.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')),
      ...(scrollWidth > innerWidth ? [scrollWidth + ' px wide'] : []),
    ];
  })`);
  return z.array(z.string()).parse(found);
}
