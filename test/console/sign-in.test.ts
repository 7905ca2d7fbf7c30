/** Who is let in: users of a file, a proxy, nobody else. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { accessRulesOf } from '../../src/console/access/access-rules.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { raw } from '../support/server/started-server.ts';
import { withUsers } from '../support/console/console-users.ts';
import { closeBrowser, faultsOf, look, startConsole } from '../support/console/running-console.ts';

afterAll(closeBrowser);

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

test('whoever guesses passwords has to wait, and no redirect leads elsewhere', async () => {
  const { passwords, running } = await withUsers();
  const post = async (form: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(`${running.url}/sign-in`, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers,
      redirect: 'manual',
    });
  const right = { name: 'vera', password: passwords.vera };
  const elsewhere = await post({ ...right, to: '//evil.example/x' });
  expect([elsewhere.status, elsewhere.headers.get('location')]).toEqual([303, '/']);
  expect((await post(right, { origin: 'https://evil.example' })).status).toBe(403);
  for (let tries = 0; tries < 3; tries += 1) {
    expect((await post({ name: 'vera', password: 'wrong' })).status).toBe(401);
  }
  expect((await post(right)).status).toBe(429);
});

test('a removed user is out at once, and a broken file lets nobody in', async () => {
  const { passwords, running, folder, file } = await withUsers();
  const { page } = await look({ ...running, link: `${running.url}/sign-in` });
  await page.getByLabel('Name').fill('vera');
  await page.getByLabel('Password').fill(passwords.vera);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('vera').waitFor();
  const users = join(file, '..', 'users.yaml');
  writeFileSync(users, 'users: []\n');
  await page.goto('/m/world');
  await page.getByLabel('Password').waitFor();
  writeFileSync(users, 'users: [');
  expect((await page.goto('/m/world'))?.status()).not.toBe(200);
  expect(folder).not.toBe('');
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
