import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { main } from '../../../src/cli.ts';
import { createWorld, type Lines, type World, type WorldOptions } from '../engine/engine-world.ts';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { tmpdir } from 'node:os';
import { createHmac } from 'node:crypto';
import { Account, TOKEN } from '../sources/hubspot-account.ts';
import { serve } from '../http/test-server.ts';
import type { Shell } from '../../../src/compose/process-shell.ts';

// A mirror on a platform that can be told to fail, and the command line within this process.

export const ann = 'ann@example.com';
export const bob = 'bob@example.com';

export interface Said {
  code: number;
  out: string;
  err: string;
  /** Both of them, in the order of their lines. */
  said: string;
  /** The document of --json; false for lines of documents. */
  json: ReturnType<typeof JSON.parse>;
}

export interface Mirrored extends World {
  /** The configuration, and the snapshot it names. */
  file: string;
  path: string;
  call(...argv: string[]): Promise<Said>;
  /** The same at a terminal. */
  seen(...argv: string[]): Promise<Said>;
}

export interface MirroredOptions extends WorldOptions {
  /** Lines of the configuration, where they are not the usual ones. */
  lines?: Lines;
  env?: Record<string, string>;
  /** Texts that no command may print. */
  hides?: readonly string[];
}

/** Makes a mirror of two people; `lines` may have it read another source than their CSV file. */
export async function mirrored({
  lines,
  env,
  hides = [],
  ...options
}: MirroredOptions = {}): Promise<Mirrored> {
  const world = await createWorld({ kinds: ['contact'], ...options });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes', product: 'no' },
  ]);
  const file = world.config(lines);
  const called = async (argv: readonly string[], terminal: boolean): Promise<Said> => {
    const result = await calling([...argv, '-c', file], { env, terminal });
    for (const text of hides) expect(result.said).not.toContain(text);
    return result;
  };
  return {
    ...world,
    file,
    path: join(world.folder, 'cli/snapshot.sqlite'),
    call: async (...argv) => called(argv, false),
    seen: async (...argv) => called(argv, true),
  };
}

/** A mirror that opted Ann out, as a second record said, which is gone from the CRM since. */
export async function ownOptOut(): Promise<Mirrored> {
  const world = await mirrored();
  const [yes, no] = [`1,${ann},yes,`, `2,${ann},no,`];
  for (const rows of [[yes], [yes, no], [yes]]) {
    world.csv(['id,email,news,product', ...rows, ''].join('\n'));
    await world.call('sync');
  }
  return world;
}

/** A mirror that has subscribed Ann and opted her out again, each by a run: four audit entries. */
export async function inAndOut(): Promise<Mirrored> {
  const world = await mirrored();
  for (const news of ['yes', 'no']) {
    world.people([{ email: ann, news }]);
    await world.call('sync');
  }
  return world;
}

/** The codes of what `status` asks somebody to see to. */
export async function attentionOf({ call }: Pick<Mirrored, 'call'>): Promise<string[]> {
  const { json } = await call('status', '--json');
  return json.attention.map(({ code }: { code: string }) => code);
}

/** The conflicts of the next run. */
export const conflictsOf = async ({ call }: Mirrored): Promise<number> =>
  (await call('sync', '--json')).json.contacts.conflicts;

/** After a first load of two, two more people await approval where one passes. */
export async function heldNewcomers(lines: Lines = {}, more: object = {}) {
  const world = await mirrored();
  world.config({ ...lines, guards: { optIns: { percent: 0, floor: 1 } } });
  expect((await world.call('sync')).code).toBe(0);
  const names = [ann, bob, 'eve@example.com', 'kim@example.com'];
  world.people(names.map((email) => ({ email, news: 'yes', ...more })));
  const { code, json } = await world.call('sync', '--json');
  expect({ code, status: json.status }).toEqual({ code: 3, status: 'held' });
  world.writes();
  return { ...world, plan: String(json.plan), held: json.contacts.held };
}

/** Every byte of the snapshot and of the files beside it. */
export function storedBytes({ folder }: World): string {
  const at = join(folder, 'cli');
  const bytes = readdirSync(at).map((name) => readFileSync(join(at, name), 'latin1'));
  return bytes.join('\n');
}

/** Changes a database as nobody should. */
export function tamper(path: string, sql: string): void {
  const db = new Database(path);
  db.exec(sql);
  db.close();
}

interface CallOptions {
  env?: Record<string, string> | undefined;
  terminal?: boolean;
  /** The columns of the terminal on stdout and stderr. */
  width?: number;
}

/** Calls the command line within this process, by a shell that keeps all it is told. */
export async function calling(
  argv: readonly string[],
  { env = {}, terminal = false, width }: CallOptions = {},
): Promise<Said> {
  const out: string[] = [];
  const err: string[] = [];
  const said: string[] = [];
  const keep = (lines: string[]) => (line: string) => {
    lines.push(line);
    said.push(line);
  };
  const signal = new AbortController().signal;
  const code = await main(argv, {
    env,
    print: keep(out),
    note: keep(err),
    progress: () => undefined,
    terminal,
    canAsk: terminal,
    interactive: width !== undefined,
    width,
    stop: signal,
    abort: signal,
  });
  const text = out.join('\n');
  const isDocument = text.startsWith('{') && !text.includes('}\n{');
  const json = isDocument && JSON.parse(text);
  return { code, out: text, err: err.join('\n'), said: said.join('\n'), json };
}

// A shell that prints nothing and asks nobody.

export const silentShell = {
  env: {},
  print: () => undefined,
  note: () => undefined,
  progress: () => undefined,
  terminal: false,
  interactive: false,
} as const;

/** Returns a shell that nobody stops, with these parts. */
export function shellThat(parts: Partial<Shell>): Shell {
  const { signal } = new AbortController();
  return { ...silentShell, stop: signal, abort: signal, ...parts };
}

// A mirror to rehearse: what a rehearsal leaves behind, and what it foretells of people.

/** The folders of copies that exist now. */
export function copyFolders(): string[] {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith('crm-mirror-rehearsal-'));
  return names.map((name) => join(tmpdir(), name));
}

/** Gives a test a folder for temporary files that no other test uses. */
function ownTemporaryFolder(): void {
  const before = process.env['TMPDIR'];
  const folder = join(tmpdir(), `rehearsed-${process.pid}-${Math.random().toString(36).slice(2)}`);
  mkdirSync(folder);
  process.env['TMPDIR'] = folder;
  onTestFinished(() => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(folder, { recursive: true, force: true });
  });
}

/** A mirror whose temporary files nobody shares. */
export async function rehearsable(options?: MirroredOptions): Promise<Mirrored> {
  ownTemporaryFolder();
  return mirrored(options);
}

/** The channels in which a rehearsal of --json --addresses sees a person in the end. */
export function foretold({ json }: Said): Record<string, Record<string, string> | undefined> {
  const people: { key: string; after: { channels: Record<string, string> } | null }[] = json.people;
  return Object.fromEntries(people.map(({ key, after }) => [key, after?.channels]));
}

// A mirror of a HubSpot account, its command line within this process, and its events.

export const secret = 'b5c9f1c4-2a6e-4a37-9d02-5f2d1f6a8e10';

export async function hubspotMirror(more: Lines = {}, extra: object = {}) {
  const hubspot = await new Account().open();
  hubspot.put(1, 'ann@example.com').put(2, 'bob@example.com').put(3, 'cid@example.com', null);
  const lines = {
    contacts: {
      source: { type: 'hubspot', token: '${HUBSPOT_TOKEN:-pat-eu1-secret}', url: hubspot.url },
      email: 'properties.email',
      deleted: 'archived',
      channels: [{ id: 'ch_news', subscription: 'properties.newsletter' }],
      ...extra,
    },
    policy: { deletes: 'owned' },
    ...more,
  };
  const world = await mirrored({ lines, hides: [TOKEN, '@example'] });
  return { hubspot, ...world };
}

/** As HubSpot tells of what happened to which objects. */
export async function tell(url: string, happened: [string, number][]): Promise<number> {
  const address = `${url}/webhooks/world`;
  const events = happened.map(([subscriptionType, objectId]) => ({ subscriptionType, objectId }));
  const body = JSON.stringify(events);
  const timestamp = String(Date.now());
  const signed = createHmac('sha256', secret).update(`POST${address}${body}${timestamp}`);
  const headers = {
    'content-type': 'application/json',
    'x-hubspot-request-timestamp': timestamp,
    'x-hubspot-signature-v3': signed.digest('base64'),
  };
  return (await fetch(address, { method: 'POST', headers, body })).status;
}

// Commands that ask the platform, run as a person would: words in, lines and a code out.

export const KEY = 'key_live_1234567890';

export interface Asked {
  line: string;
  headers: Record<string, unknown>;
  body: unknown;
}

interface Reply {
  status?: number;
  body: unknown;
}

/** Answers by `METHOD /path`, without the query; anything else as the platform would, 404. */
export async function platformOf(replies: Record<string, Reply>) {
  const asked: Asked[] = [];
  const url = await serve(({ method, url: path, headers, text }, response) => {
    const line = `${method} ${path?.split('?')[0]}`;
    asked.push({ line, headers, body: text === '' ? undefined : JSON.parse(text) });
    const { status = 200, body } = replies[line] ?? { status: 404, body: { message: 'Not found' } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return { url, asked };
}

/** A mirror of templates only, each file with its fields, on the platform at `url`. */
export function mirrorOn(url: string, templates: Record<string, object> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-reach-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'templates'));
  for (const [key, fields] of Object.entries({ welcome: { subject: 'Hi' }, ...templates })) {
    writeFileSync(join(folder, `templates/${key}.json`), JSON.stringify(fields));
  }
  const config = {
    mirror: 'acme',
    snapshot: './acme.sqlite',
    platform: { url, apiKey: KEY, timeoutMs: 10_000 },
    templates: { source: { type: 'directory', path: './templates' } },
  };
  const file = join(folder, 'mirror.yaml');
  writeFileSync(file, JSON.stringify(config));
  return async (...argv: string[]) => call(argv, file);
}

/** Words that begin with NAME= are the environment's. */
async function call(argv: readonly string[], file: string) {
  const env = Object.fromEntries(
    argv.filter((word) => /^[A-Z_]+=/.test(word)).map((word) => word.split(/=(.*)/s)),
  );
  const words = argv.filter((word) => !/^[A-Z_]+=/.test(word));
  const { code, out, err } = await calling([...words, '-c', file], { env });
  return { code, out: out === '' ? [] : out.split('\n'), err };
}
