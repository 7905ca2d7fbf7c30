import { randomBytes, scryptSync } from 'node:crypto';
import { join } from 'node:path';
import axe from 'axe-core';
import { chromium, type Browser, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { Clock } from '../../../src/domain/clock.ts';
import { main } from '../../../src/cli.ts';
import { formIn } from '../../../src/commands/table.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import {
  type AccessRules,
  accessRulesOf,
  type User,
} from '../../../src/console/access/access-rules.ts';
import { addUser } from '../../../src/console/access/users-file.ts';
import type { ConsoleFleet } from '../../../src/console/pages/mirrors.ts';
import { serveConsole } from '../../../src/console/console-routes.ts';
import { consoleMirror, type ConsoleMirror } from '../../../src/console/view/console-mirror.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { createServer } from '../../../src/worker/server/http-server.ts';
import { mirrored, silentShell } from '../commands/mirrored-contacts.ts';

// A console of one mirror, served within this process, and a browser that looks at it.

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
  access: Partial<AccessRules> & { user?: User; clock?: Clock } = {},
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
    formOf: formIn,
  };
  const { user = operator, clock = systemClock, ...rules } = access;
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
        clock,
        secret: '00'.repeat(32),
        random: randomBytes,
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

/** One for all files of this process, with which it ends. */
let browser: Promise<Browser> | undefined;

/** Only what hangs for good reaches this, on a busy machine too. */
const LONGEST_MS = 120_000;

/**
 * Opens a page in a real browser, closed with the test. The link signs in, unless a proxy names the
 * user.
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

// The live updates of a page, as a browser receives them.

/** A stream of live updates. */
export interface LiveStream {
  status: number;
  /** The newest text of each part of the page, by id. */
  parts: Map<string, string>;
  /** Whether the server has ended it. */
  hasEnded(): boolean;
  close(): void;
}

const parts = z.record(z.string(), z.string());

/** Opens the stream with a cookie; it ends with the test. */
export async function followLive(url: string, cookie: string): Promise<LiveStream> {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const answer = await fetch(url, {
    headers: { accept: 'text/event-stream', cookie },
    redirect: 'manual',
    signal: stop.signal,
  });
  const stream = { status: answer.status, parts: new Map<string, string>(), ended: false };
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const events = (text + chunk).split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1] ?? '{}';
        for (const [id, html] of Object.entries(parts.parse(JSON.parse(data)))) {
          stream.parts.set(id, html);
        }
      }
    }
  };
  const ended = (): void => void (stream.ended = true);
  void read().then(ended, ended);
  const { status, parts: shown } = stream;
  return { status, parts: shown, hasEnded: () => stream.ended, close: () => stop.abort() };
}

/** Returns the cookie that a request to sign in is answered with. */
export function cookieOf(answer: Response): string {
  return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

// A console whose file of users has an operator and a viewer.

/** Makes a mirror and starts its console with the users olga (operator) and vera (viewer). */
export async function withUsers(server: object = {}) {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.config({ server: { users: 'users.yaml', ...server } });
  const { out } = await world.call('console', '--add-user', 'olga', '--role', 'operator');
  const passwords = { olga: /: (\S+)$/.exec(out)?.[1] ?? '', vera: 'a viewer knows it' };
  // Her password is guessed often, so its hash is one that takes less time.
  const [N, r, p] = [1024, 8, 1];
  const salt = randomBytes(16);
  const hash = scryptSync(passwords.vera, salt, 32, { N, r, p });
  const [salted, hashed] = [salt.toString('base64url'), hash.toString('base64url')];
  const password = ['scrypt', N, r, p, salted, hashed].join(':');
  addUser(join(world.folder, 'users.yaml'), { name: 'vera', role: 'viewer', password });
  const access = { ...accessRulesOf(loadConfig(world.file, {})), link: undefined };
  const running = await startConsole([world.file], access);
  const post = async (
    path: string,
    form: Record<string, string> | string,
    headers: Record<string, string> = {},
  ) =>
    fetch(running.url + path, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers,
      redirect: 'manual',
    });
  return {
    ...world,
    passwords,
    running,
    /** Sends a form, as a browser does. */
    post,
    /** Signs a user in, and returns the cookie. */
    async signIn(name: keyof typeof passwords): Promise<string> {
      const answer = await post('/sign-in', { name, password: passwords[name] });
      expect(answer.status).toBe(303);
      return cookieOf(answer);
    },
    get: async (path: string, cookie: string) =>
      fetch(running.url + path, { headers: { cookie }, redirect: 'manual' }),
  };
}
