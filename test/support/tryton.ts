/**
 * A real Tryton for tests, with its module party. In this order: the one that TEST_TRYTON_URL names
 * (http://LOGIN:PASSWORD@HOST:PORT/DATABASE, of an administrator; a fresh database, in which the
 * test files follow one another, as npm run test:tryton has them); trytond on PATH; with
 * TEST_TRYTON_INSTALL, as root, Debian's packages, installed.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from './port.ts';
import { findProgram, launch, run } from './program.ts';

const PACKAGES = ['tryton-server', 'tryton-modules-party'];
const DATABASE = 'crm';
const LOGIN = 'admin';
const PASSWORD = 'tr ü:7%"';

/** Where it is, and how to get in, as the options of a source have it. */
export interface Access {
  url: string;
  database: string;
  username: string;
  password: string;
}

export interface TestTryton {
  access: Access;
  /** `model.party.party.create`, with its parameters; those who are inactive are seen. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each method answers something of its own
  call(method: string, ...params: unknown[]): Promise<any>;
  close(): Promise<void>;
}

/** Undefined: there is none to be had, and that was said. */
export async function anyTryton(): Promise<TestTryton | undefined> {
  const given = process.env['TEST_TRYTON_URL'];
  if (given) return connected(accessIn(given), async () => undefined);
  if (process.env['TEST_TRYTON_INSTALL'] && !(await program()) && process.getuid?.() === 0) {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update']);
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...PACKAGES], { env });
  }
  const path = await program();
  if (path !== undefined) return started(path);
  // oxlint-disable-next-line no-console -- nobody would notice what is missing
  console.warn(
    `no Tryton for the tests, they are skipped: npm run test:tryton as root, or set TEST_TRYTON_URL`,
  );
  return undefined;
}

async function program(): Promise<string | undefined> {
  return findProgram(['trytond']);
}

function accessIn(given: string): Access {
  const { origin, pathname, username, password } = new URL(given);
  return {
    url: origin,
    database: decodeURIComponent(pathname.slice(1)),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

async function started(path: string): Promise<TestTryton> {
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-tryton-'));
  const port = await freePort();
  const config = join(folder, 'trytond.conf');
  const secret = join(folder, 'password');
  const databases = join(folder, 'databases');
  await mkdir(databases);
  await writeFile(join(databases, `${DATABASE}.sqlite`), '');
  await writeFile(secret, PASSWORD);
  await writeFile(
    config,
    `[database]\nuri = sqlite://\npath = ${databases}\n[web]\nlisten = 127.0.0.1:${port}\n`,
  );
  const set = ['-c', config, '-d', DATABASE];
  const fill = ['-u', 'ir', 'res', 'party', '--activate-dependencies', '--email', 'a@example.com'];
  const env = { ...process.env, TRYTONPASSFILE: secret };
  await run(`${path}-admin`, [...set, ...fill], { env });
  const server = await launch([path, ...set]);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await answers(url)); tries += 1) {
    if (tries > 800) throw new Error(`Tryton does not answer on port ${port}`);
    await pause(25);
  }
  const access = { url, database: DATABASE, username: LOGIN, password: PASSWORD };
  return connected(access, async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
}

async function answers(url: string): Promise<boolean> {
  return asked(`${url}/`, { method: 'common.server.version', params: [] }).then(
    () => true,
    () => false,
  );
}

async function connected(access: Access, close: TestTryton['close']): Promise<TestTryton> {
  const { url, database, username, password } = access;
  const address = `${url}/${encodeURIComponent(database)}/`;
  const logIn = { method: 'common.db.login', params: [username, { password }] };
  const [user, key] = (await asked(address, logIn)) as [number, string];
  const authorization = `Session ${Buffer.from(`${username}:${user}:${key}`).toString('base64')}`;
  return {
    access,
    call: async (method, ...params) =>
      asked(address, { method, params: [...params, { active_test: false }] }, { authorization }),
    close,
  };
}

async function asked(
  address: string,
  call: { method: string; params: unknown[] },
  headers: Record<string, string> = {},
): Promise<unknown> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ id: 0, ...call }),
  });
  const text = await response.text();
  const { result, error } = response.ok ? JSON.parse(text) : { result: null, error: text };
  if (error !== undefined) throw new Error(`${call.method}: ${response.status} ${text}`);
  return result;
}
