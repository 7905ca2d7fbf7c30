/** The live updates: what ends them, and what does not. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import {
  withUsers,
  cookieOf,
  followLive,
  startConsole,
} from '../support/console/running-console.ts';
import { untilHolds } from '../support/waiting.ts';

async function opened() {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  const running = await startConsole([world.file]);
  const signedIn = await fetch(running.link, { redirect: 'manual' });
  const cookie = cookieOf(signedIn);
  const live = await followLive(`${running.url}/m/world/live`, cookie);
  const get = async (path: string) => fetch(running.url + path, { headers: { cookie } });
  await untilHolds(() => expect(live.parts.get('state')).toContain('In sync'));
  return { world, running, live, get };
}

/** Removes, demotes, signs out, or gives a new password. */
const changes = {
  'is removed': ({ users, text }: Change) => writeFileSync(users, text.replace(/vera/, 'zora')),
  'becomes an operator': ({ users, text }: Change) =>
    writeFileSync(users, text.replace('viewer', 'operator')),
  'gets another password': ({ users, text }: Change) =>
    writeFileSync(users, text.replace(/(scrypt\S+)([^]*)scrypt\S+/, '$1$2$1')),
  'signs out': async ({ signOut }: Change) => expect(await signOut()).toBe(303),
};

interface Change {
  users: string;
  text: string;
  signOut(): Promise<number>;
}

test.each([
  'is removed' as const,
  'becomes an operator' as const,
  'gets another password' as const,
  'signs out' as const,
])('a page that is open ends when its user %s', async (change) => {
  const { running, file, signIn, get, post } = await withUsers();
  const cookie = await signIn('vera');
  const live = await followLive(`${running.url}/m/world/live`, cookie);
  await untilHolds(() => expect(live.parts.get('state')).toContain('In sync'));
  const users = join(file, '..', 'users.yaml');
  const page = await (await get('/m/world', cookie)).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
  await changes[change]({
    users,
    text: readFileSync(users, 'utf8'),
    signOut: async () => (await post('/sign-out', { csrf }, { cookie })).status,
  });
  await untilHolds(() => expect(live.hasEnded()).toBe(true));
  const answer = await get('/m/world', cookie);
  expect(answer.status).toBe(change === 'becomes an operator' ? 200 : 303);
  expect(running.failures).toEqual([]);
});

test('a page that is open ends when its mirror goes, which is not found then', async () => {
  const { running, live, get } = await opened();
  running.mirrors.pop();
  await untilHolds(() => expect(live.hasEnded()).toBe(true));
  expect((await get('/m/world')).status).toBe(404);
  expect((await get('/m/world/live')).status).toBe(404);
  expect(running.failures).toEqual([]);
});

test('a user has 20 live pages at most, and another one after one is closed', async () => {
  const { running, signIn } = await withUsers();
  const cookie = await signIn('vera');
  const url = `${running.url}/m/world/live`;
  const streams = await Promise.all(Array.from({ length: 21 }, () => followLive(url, cookie)));
  expect(streams.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    ...Array(20).fill(200),
    429,
  ]);
  expect((await followLive(url, await signIn('olga'))).status).toBe(200);
  streams.find(({ status }) => status === 200)?.close();
  await untilHolds(async () => expect((await followLive(url, cookie)).status).toBe(200));
});

/** Keeps the snapshot locked, as a tool does that works on it. */
function lock(path: string): () => void {
  const db = new Database(path);
  db.pragma('journal_mode = delete');
  db.exec('begin exclusive');
  onTestFinished(() => void db.close());
  return () => void db.exec('rollback');
}

const spoil = {
  'is no database': (path: string) => writeFileSync(path, 'garbage'.repeat(1000)),
  'is of a newer version': (path: string) => {
    const db = new Database(path);
    db.pragma('user_version = 9999');
    db.close();
  },
  'is locked': (path: string) => void lock(path),
};

test.each([
  ['is no database', { part: 'attention', said: 'this snapshot is damaged', status: 200 }],
  ['is of a newer version', { part: 'attention', said: 'newer', status: 200 }],
  ['is locked', { part: 'state', said: 'locked this snapshot', status: 503 }],
] as const)('an open page says that the snapshot %s', async (what, { part, said, status }) => {
  const { world, running, live, get } = await opened();
  spoil[what](world.path);
  await untilHolds(() => expect(live.parts.get(part)).toContain(said));
  expect(live.parts.get('limits-run')).not.toContain('No run is in progress');
  expect((await get('/assets/own/console.css')).status).toBe(200);
  expect((await get('/m/world')).status).toBe(status);
  expect([live.hasEnded(), running.failures]).toEqual([false, []]);
});

test('an open page shows the state again when the snapshot can be read again', async () => {
  const { world, live } = await opened();
  copyFileSync(world.path, `${world.path}-kept`);
  writeFileSync(world.path, 'garbage'.repeat(1000));
  await untilHolds(() => expect(live.parts.get('state')).toContain('Needs attention'));
  copyFileSync(`${world.path}-kept`, world.path);
  await untilHolds(() => expect(live.parts.get('state')).toContain('In sync'));
});
