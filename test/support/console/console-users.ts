/** A console whose file of users has an operator and a viewer. */
import { expect } from 'vitest';
import { accessRulesOf } from '../../../src/console/access/access-rules.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { mirrored } from '../commands/mirrored-contacts.ts';
import { cookieOf } from './live-stream.ts';
import { startConsole } from './running-console.ts';

/** Makes a mirror and starts its console with the users olga (operator) and vera (viewer). */
export async function withUsers(server: object = {}) {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.config({ server: { users: 'users.yaml', ...server } });
  const passwordOf = async (name: string, role: string): Promise<string> => {
    const { out } = await world.call('console', '--add-user', name, '--role', role);
    return /: (\S+)$/.exec(out)?.[1] ?? '';
  };
  const passwords = {
    olga: await passwordOf('olga', 'operator'),
    vera: await passwordOf('vera', 'viewer'),
  };
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
