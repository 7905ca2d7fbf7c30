/** Who is let in: users of a file, a proxy, nobody else. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { accessRulesOf } from '../../src/console/access/access-rules.ts';
import {
  addUser,
  changeUser,
  hashPassword,
  openUsers,
} from '../../src/console/access/users-file.ts';
import { createSessionStore, sessionMs } from '../../src/console/sign-in.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { scratch } from '../support/sources/source-reading.ts';
import { raw } from '../support/server/started-server.ts';
import {
  cookieOf,
  withUsers,
  faultsOf,
  look,
  startConsole,
} from '../support/console/running-console.ts';

test('a user signs in, stays who they are, and signs out', async () => {
  const { passwords, running } = await withUsers();
  const { page, complaints } = await look({ ...running, link: `${running.url}/m/world` });
  expect(await faultsOf(page)).toEqual([]);
  await page.getByLabel('Name').fill('olga');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Name').fill('olga');
  await page.getByLabel('Password').fill(passwords.olga);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('olga').waitFor();
  expect(new URL(page.url()).pathname).toBe('/m/world');
  const [before] = await page.context().cookies();
  expect(before).toMatchObject({ httpOnly: true, sameSite: 'Lax' });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Password').waitFor();
  const value = `${before?.name}=${before?.value}`;
  const stolen = await fetch(`${running.url}/m/world`, {
    headers: { cookie: value },
    redirect: 'manual',
  });
  expect(stolen.status).toBe(303);
  expect(complaints.filter((one) => !one.includes('401'))).toEqual([]);
});

test('whoever guesses passwords has to wait, others do not, and no redirect leads elsewhere', async () => {
  const { passwords, post, get } = await withUsers({ proxies: ['127.0.0.1'] });
  const signIn = async (form: object, from: string, headers: Record<string, string> = {}) =>
    post('/sign-in', { ...form }, { 'x-forwarded-for': from, ...headers });
  const right = { name: 'vera', password: passwords.vera };
  const elsewhere = await signIn({ ...right, to: '//evil.example/x' }, '10.0.0.1');
  expect([elsewhere.status, elsewhere.headers.get('location')]).toEqual([303, '/']);
  const forged = await signIn(right, '10.0.0.1', { origin: 'https://evil.example' });
  expect(forged.status).toBe(403);
  for (let tries = 0; tries < 5; tries += 1) {
    // What stands before the address that the proxy saw is made up by whoever asks.
    const from = `192.0.2.${tries}, 10.0.0.1`;
    expect((await signIn({ name: 'vera', password: 'wrong' }, from)).status).toBe(401);
  }
  const waits = await signIn(right, '10.0.0.1');
  expect([waits.status, await waits.text()]).toEqual([429, expect.stringContaining('Wait a few')]);
  expect((await signIn(right, '10.0.0.2')).status).toBe(303);
  const olga = { name: 'olga', password: passwords.olga };
  expect((await signIn(olga, '10.0.0.1')).status).toBe(303);
  for (let tab = 0; tab < 40; tab += 1) expect((await get('/sign-in', '')).status).toBe(200);
});

test('without a proxy in the configuration, nobody chooses the address that is counted', async () => {
  const { passwords, post } = await withUsers();
  const signIn = async (password: string, from: number) =>
    post('/sign-in', { name: 'vera', password }, { 'x-forwarded-for': `10.0.0.${from}` });
  for (let tries = 0; tries < 5; tries += 1)
    expect((await signIn('wrong', tries)).status).toBe(401);
  expect((await signIn(passwords.vera, 9)).status).toBe(429);
});

test('guesses at one account are limited from all addresses, but for those it is known from', async () => {
  const { passwords, post } = await withUsers({ proxies: ['127.0.0.1'] });
  const signIn = async (password: string, from: string) =>
    (await post('/sign-in', { name: 'vera', password }, { 'x-forwarded-for': from })).status;
  expect(await signIn(passwords.vera, '10.0.0.1')).toBe(303);
  const guesses = Array.from({ length: 25 }, (_, at) => signIn('wrong', `10.0.1.${at}`));
  const statuses = await Promise.all(guesses);
  expect(statuses.filter((status) => status === 401)).toHaveLength(20);
  expect(await signIn(passwords.vera, '10.0.2.1')).toBe(429);
  expect(await signIn(passwords.vera, '10.0.0.1')).toBe(303);
});

/** Who signs in, and who has a session by the header of a proxy. */
const owners = [
  ['a viewer', { user: { name: 'vera', isByLink: false, mark: '' } }],
  ['an operator', { user: { name: 'olga', isByLink: false, mark: '' } }],
  ['the link', { user: { name: 'vera', isByLink: true, mark: '' } }],
  ['a viewer by a proxy', { proxied: 'vera' }],
  ['an operator by a proxy', { proxied: 'olga' }],
] as const;

test.each(owners)('a thousand sessions of %s end nobody else’s', (who, session) => {
  const store = createSessionStore(() => 0);
  const cookie = { originalMaxAge: null };
  const done = () => undefined;
  const isThere = (id: string): boolean => {
    let found = false;
    store.get(id, (_, kept) => (found = Boolean(kept)));
    return found;
  };
  for (const [name, other] of owners) store.set(name, { cookie, ...other }, done);
  for (let nth = 0; nth < 1_000; nth += 1) store.set(`${nth}`, { cookie, ...session }, done);
  const left = owners.map(([name]) => name).filter(isThere);
  expect(left).toEqual(owners.map(([name]) => name).filter((name) => name !== who));
  expect(['949', '950', '999'].map(isThere)).toEqual([false, true, true]);
});

test('a page that renews itself does not keep its session', async () => {
  const world = await mirrored();
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const { url, link } = await startConsole([world.file], { clock });
  const statusAfter = async (headers: Record<string, string>) => {
    const cookie = cookieOf(await fetch(link, { redirect: 'manual' }));
    const get = async (more = {}) =>
      (await fetch(`${url}/m/world/runs`, { headers: { cookie, ...more } })).status;
    now += sessionMs / 2;
    expect(await get(headers)).toBe(200);
    now += sessionMs / 2 + 1;
    return get();
  };
  expect(await statusAfter({})).toBe(200);
  expect(await statusAfter({ 'x-renews': '1' })).toBe(401);
});

test('what no form sends is refused, and is no bug', async () => {
  const { running, post, get, signIn, passwords } = await withUsers();
  const json = { 'content-type': 'application/json' };
  expect((await post('/sign-in', 'name=a&name=b')).status).toBe(400);
  expect((await post('/sign-in', { name: 'a'.repeat(300) })).status).toBe(400);
  expect((await get('/sign-in?to=a&to=b&key=a&key=b', '')).status).toBe(200);
  const vera = { name: 'vera', password: passwords.vera };
  const landed = await post('/sign-in', { ...vera, to: '/m/world/ü?q=ä b' });
  expect(landed.status).toBe(303);
  expect(landed.headers.get('location')).toBe('/m/world/%C3%BC?q=%C3%A4%20b');
  const cookie = await signIn('vera');
  expect((await post('/m/world/people', 'who=a&who=b', { cookie })).status).toBe(400);
  const sent = await fetch(`${running.url}/m/world/people`, {
    method: 'POST',
    headers: { cookie, ...json },
    body: '{"who":{"a":1}}',
  });
  expect(sent.status).toBe(400);
  for (const from of ['1e999', '1e30', '-1e30', 'NaN', '1.5', '']) {
    expect([from, (await get(`/m/world/runs?from=${from}`, cookie)).status]).toEqual([from, 200]);
    expect((await get(`/m/world/audit?before=${from}`, cookie)).status).toBe(200);
  }
  expect(running.failures).toEqual([]);
});

test('a removed user is out at once, and a broken file lets nobody in', async () => {
  const { passwords, running, folder, file, call } = await withUsers();
  const { page } = await look({ ...running, link: `${running.url}/sign-in` });
  await page.getByLabel('Name').fill('vera');
  await page.getByLabel('Password').fill(passwords.vera);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('vera').waitFor();
  const users = join(file, '..', 'users.yaml');
  const known = readFileSync(users, 'utf8');
  const again = await call('console', '--add-user', 'vera', '--role', 'operator');
  expect(again).toMatchObject({ code: 2, out: '' });
  expect(again.err).toContain(
    'users.yaml already → change the password or the role on the page Users',
  );
  expect(readFileSync(users, 'utf8')).toBe(known);
  writeFileSync(users, 'users: []\n');
  await page.goto('/m/world');
  await page.getByLabel('Password').waitFor();
  writeFileSync(users, 'users: [');
  expect((await page.goto('/m/world'))?.status()).not.toBe(200);
  expect(folder).not.toBe('');
});

test('an operator adds, changes and shuts out users, but never the last operator', async () => {
  const { passwords, running, post, signIn } = await withUsers();
  const vera = await signIn('vera');
  const as = async (cookie: string) =>
    (await fetch(`${running.url}/m/world`, { headers: { cookie }, redirect: 'manual' })).status;
  expect(await as(vera)).toBe(200);
  const forged = { name: 'vera', change: 'operator', csrf: 'x' };
  expect((await post('/users', forged, { cookie: vera })).status).toBe(403);
  const { page, complaints } = await look({ ...running, link: `${running.url}/sign-in` });
  await page.getByLabel('Name').fill('olga');
  await page.getByLabel('Password').fill(passwords.olga);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'Users' }).click();
  const row = (name: string) => page.locator('tbody tr', { hasText: name });
  const flash = page.getByRole('status');
  expect(await faultsOf(page)).toEqual([]);
  await row('olga').getByRole('button', { name: 'Make viewer' }).click();
  expect(await flash.innerText()).toContain('olga is the last operator');
  await row('vera').getByRole('button', { name: 'Disable' }).click();
  expect(await row('vera').innerText()).toContain('may not sign in');
  expect(await as(vera)).toBe(303);
  await page.getByLabel('Name').fill('kim');
  await page.getByRole('button', { name: 'Add' }).click();
  const password = /only now: (\S+)/.exec(await flash.innerText())?.[1] ?? '';
  const answer = await post('/sign-in', { name: 'kim', password });
  expect(answer.status).toBe(303);
  const kim = cookieOf(answer);
  expect(await as(kim)).toBe(200);
  await row('kim').getByRole('button', { name: 'New password' }).click();
  expect(await flash.innerText()).not.toContain(password);
  expect(await as(kim)).toBe(303);
  await row('vera').getByRole('button', { name: 'Enable' }).click();
  expect(await as(vera)).toBe(200);
  await page.goto('/m/world/audit');
  const entries = page.locator('.timeline > li', {
    hasText: 'olga (console) changed the console user',
  });
  await entries.getByText('changed the console user kim: added as viewer').waitFor();
  const told = (await entries.locator('tr', { hasText: 'about' }).allTextContents()).join();
  for (const what of ['vera: may not sign in', 'kim: added as viewer', 'kim: a new password'])
    expect(told).toContain(what);
  expect(told).not.toContain(password);
  expect(complaints).toEqual([]);
});

test('viewers of a file whose operators a proxy names can be shut out', async () => {
  const path = join(await scratch(), 'users.yaml');
  const password = await hashPassword('a password', Buffer.alloc(16));
  addUser(path, { name: 'vera', role: 'viewer', password });
  changeUser(path, 'vera', { disabled: true });
  expect(openUsers(path).find('vera')).toBe(undefined);
});

test('a proxy names the user, from its own address only', async () => {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  const headers = { 'x-forwarded-user': 'olga@example.com' };
  const get = async (from: string): Promise<[number, boolean]> => {
    const proxy = {
      header: 'x-forwarded-user',
      from: new Set([from]),
      operators: new Set(['olga@example.com']),
    };
    const { url } = await startConsole([world.file], { proxy, link: undefined });
    const answer = await fetch(`${url}/m/world`, { headers });
    return [answer.status, (await answer.text()).includes('operator')];
  };
  expect(await get('127.0.0.1')).toEqual([200, true]);
  expect(await get('10.0.0.9')).toEqual([401, false]);
});

test.each([
  ['https://console.example.com', 'console.example.com', true],
  ['https://console.example.com:8443/', 'console.example.com:8443', true],
  ['https://console.example.com', '127.0.0.1:8080', false],
  ['http://console.example.com', 'console.example.com', false],
])('with publicUrl %s, a cookie for %s is Secure: %s', async (publicUrl, host, isSecure) => {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.config({ server: { publicUrl } });
  const { secureHost } = accessRulesOf(loadConfig(world.file, {}));
  const { url, link } = await startConsole([world.file], { secureHost });
  const signedIn = await raw(url, { path: link.slice(url.length), headers: { host } });
  const cookies = [signedIn.headers['set-cookie']].flat().map(String);
  expect(cookies).toEqual([expect.stringMatching(/^crm-mirror-session=.*; HttpOnly/)]);
  expect(cookies.map((one) => one.split('; ').includes('Secure'))).toEqual([isSecure]);
  const [cookie = ''] = cookies.map((one) => one.split(';', 1)[0]);
  expect(await raw(url, { path: '/m/world', headers: { host, cookie } })).toMatchObject({
    status: 200,
    body: expect.stringContaining('operator'),
  });
});

test('a browser gets a page for an address that does not exist', async () => {
  const { running, signIn, get } = await withUsers();
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const cookie = await signIn('vera');
  // Which mirrors there are is for users alone.
  for (const path of ['/m/another', '/m/world']) expect((await get(path, '')).status).toBe(303);
  for (const [path, status] of [
    ['/nowhere', 404],
    ['/m/another', 404],
    [`/m/world/runs/${'x'.repeat(600)}`, 404],
  ] as const) {
    const page = await fetch(running.url + path, { headers: { accept, cookie } });
    expect([path, page.status]).toEqual([path, status]);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await page.text()).toContain('To the console');
    const program = await fetch(running.url + path, { headers: { cookie } });
    expect([program.status, await program.json()]).toEqual([status, { error: expect.any(String) }]);
  }
});
