/** Who may act in the console: each action is tried, so that a new one cannot be forgotten. */
import { expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { look, startConsole, viewer } from '../support/console/running-console.ts';

/** The forms that change nothing of a mirror: the session, and searches for a person. */
const harmless = [
  'POST /people',
  'POST /m/:mirror/people',
  'POST /m/:mirror/audit',
  'POST /sign-in',
  'POST /sign-out',
];

/** The forms that have the CRM or the platform asked: as guarded as the actions. */
const questions = [
  'POST /m/:mirror/people/:id/now',
  'POST /m/:mirror/people/:id/signed.html',
  'POST /m/:mirror/templates',
  'POST /m/:mirror/templates/:id',
];

/** Values with which one action or another would do something. */
const values = {
  agreed: 'yes',
  channel: 'ch_news',
  evidence: 'none',
  mode: 'full',
  person: 'ann@example.com',
  plan: 'a26a56a6e697c2ed',
  reason: 'none',
  run: 'last',
  subject: 'rehearsal',
  to: 'out',
};

async function opened(options: Parameters<typeof startConsole>[1] = {}) {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.writes();
  const running = await startConsole([world.file], options);
  const { page } = await look(running);
  const acts = running.routes.filter((route) => route.startsWith('POST ') && isAct(route));
  const send = async (route: string, csrf?: string): Promise<number> => {
    const form = { ...values, ...(csrf !== undefined && { csrf }) };
    const answer = await page.request.post(pathOf(route), { form, maxRedirects: 0 });
    return answer.status();
  };
  /** Nothing was sent, kept or begun. */
  const isUntouched = async (): Promise<void> => {
    expect(world.writes()).toEqual([]);
    expect((await world.call('runs', '--json')).json.runs).toHaveLength(1);
    expect((await world.call('status', '--json')).json.paused).toBeNull();
    await page.goto('/m/world/rehearsal');
    await page.getByText('Nothing has been rehearsed').waitFor();
    expect(running.failures).toEqual([]);
  };
  return { ...world, running, page, acts, send, isUntouched };
}

/** Where the mirror of these tests has a route. */
const pathOf = (route: string): string => route.replace('POST ', '').replace(':mirror', 'world');

const isAct = (route: string): boolean => !harmless.includes(route);

test('every form is an action, apart from the session, the search and questions', async () => {
  const { acts, running } = await opened();
  expect(acts.length).toBeGreaterThan(15);
  const others = acts.filter((route) => !route.startsWith('POST /m/:mirror/do/'));
  expect(others).toEqual(['POST /audit', 'POST /steer', 'POST /fleet/drain', ...questions]);
  expect(running.routes.filter((route) => !/^(GET|HEAD|POST) /.test(route))).toEqual([]);
  for (const route of harmless) expect(running.routes).toContain(route);
});

test('every action refuses a viewer, with the token of the session too', async () => {
  const { acts, page, send, isUntouched } = await opened({ user: viewer });
  const csrf = await page.locator('input[name=csrf]').first().inputValue();
  for (const route of acts) {
    expect([route, await send(route, csrf)]).toEqual([route, 403]);
    expect([route, await send(route)]).toEqual([route, 403]);
  }
  await isUntouched();
});

test('every action refuses a missing token and a forged one', async () => {
  const { acts, page, send, isUntouched } = await opened();
  const csrf = await page.locator('input[name=csrf]').first().inputValue();
  const forged = [undefined, '', 'guessed', csrf.toUpperCase(), csrf.slice(0, -1)];
  for (const route of acts) {
    for (const token of forged)
      expect([route, token, await send(route, token)]).toEqual([route, token, 403]);
  }
  await isUntouched();
});

test('every action sends whoever is not signed in away', async () => {
  const { acts, running, isUntouched } = await opened();
  for (const route of acts) {
    const path = running.url + pathOf(route);
    const answer = await fetch(path, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams(values),
    });
    expect([route, answer.status]).toEqual([route, 401]);
  }
  await isUntouched();
});
