/** Who is recorded and on no page of a listing is asked for, one by one and within bounds. */
import { expect, onTestFinished, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import type { Answer, Request, Send } from '../../../src/domain/exchange.ts';
import { unlisted } from '../../../src/engine/observe/observe-platform.ts';
import { createStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { playsAll } from '../../support/extent.ts';

/** What is wrong with the platform, at the moment. */
interface Ailment {
  /** Contacts that no page shows; `total` counts them. */
  hides(email: string): boolean;
  /** What `total` says too much. */
  more: number;
  /** Instead of an answer to retrieve. */
  retrieve: Answer | undefined;
  /** Called before every request. */
  before(request: Request): void | Promise<void>;
  /** Whether a search hides them, too. */
  inSearch: boolean;
}

function ailing(options: StageOptions = {}): { stage: Stage; now: Ailment; asked: string[] } {
  const now: Ailment = {
    hides: () => false,
    more: 0,
    retrieve: undefined,
    before: () => undefined,
    inSearch: false,
  };
  const asked: string[] = [];
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      await now.before(request);
      asked.push(`${request.method} ${request.path}`);
      if (now.retrieve && request.path.includes('/retrieve/')) return now.retrieve;
      const answer = await send(request, signal);
      const isPage = request.path.startsWith('/api/contacts/list');
      const isIll = now.inSearch || !request.path.includes('search=');
      return isPage && isIll ? paged(answer, now) : answer;
    };
  const stage = createStage({ ...options, wire });
  onTestFinished(() => stage.close());
  return { stage, now, asked };
}

function paged(answer: Answer, { hides, more }: Ailment): Answer {
  const body = JSON.parse(answer.body);
  const contacts = body.contacts.filter(({ email }: { email: string }) => !hides(email));
  return { ...answer, body: JSON.stringify({ ...body, contacts, total: body.total + more }) };
}

const refusal = (status: number): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ message: 'no', why: 'because', fix: 'none' }),
});

const addressOf = (at: number) => `p${at}@example.com`;
const countOf = (asked: readonly string[], part: string) =>
  asked.filter((line) => line.includes(part)).length;

/** A mirror that knows so many people, all in the newsletter; only what follows is counted. */
async function known(
  count: number,
  options: StageOptions = {},
): Promise<ReturnType<typeof ailing>> {
  const world = ailing(options);
  const { stage, asked } = world;
  for (let at = 0; at < count; at += 1) {
    stage.people.push({ id: `${at}`, email: addressOf(at), ch_news: 'yes' });
    stage.emulator.seed.contact({
      email: addressOf(at),
      channels: { ch_news: 'opt_in' },
      createdAt: stage.clock.now() - 86_400_000 - at,
    });
  }
  await stage.sync();
  asked.length = 0;
  stage.writes();
  return world;
}

test.each(['fast', 'full', { single: 'left@example.com' }] as const)(
  'a search that counts more than it shows proves nobody absent: %j',
  async (mode) => {
    const { stage, now } = await known(1);
    const email = 'left@example.com';
    stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_out' } });
    stage.people.push({ id: 'left', email, ch_news: 'yes' });
    Object.assign(now, { hides: (one: string) => one === email, inSearch: true });
    expect((await stage.sync({ mode })).status).toBe('failed');
    expect(stage.writes()).toEqual([]);
    now.hides = () => false;
    expect((await stage.sync()).contacts).toMatchObject({ conflicts: 1 });
    expect(stage.writes()).toEqual([]);
  },
);

test('a list that counts fewer contacts than the organization has is not complete', async () => {
  const { stage, now } = await known(3);
  now.hides = (email) => email === addressOf(1);
  now.more = -1;
  now.retrieve = refusal(500);
  const { certificate, reasons } = await stage.sync();
  expect(certificate.platform).toBe(false);
  expect(reasons).toContainEqual(
    expect.stringContaining('the platform counts 3 contacts, and its'),
  );
});

test('a contact that is found joins the listing, and completes it', async () => {
  const { stage, now, asked } = await known(5);
  now.hides = (email) => email === addressOf(2);
  stage.emulator.dashboard.leave(addressOf(2), 'ch_news');
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(true);
  expect(summary.contacts).toMatchObject({ observed: 5, conflicts: 1 });
  expect(countOf(asked, '/retrieve/')).toBe(1);
  expect(countOf(asked, 'search=')).toBe(0);
});

test('a first page that is not full does not end a list whose total tells of more', async () => {
  const { stage, now, asked } = await known(150);
  const hidden = stage.emulator.world.contacts()[0]?.email;
  now.hides = (email) => email === hidden;
  expect((await stage.sync()).contacts).toMatchObject({ observed: 150, conflicts: 0 });
  expect(countOf(asked, '/retrieve/')).toBe(1);
});

test('a contact that is looked up and gone counts as gone in an uncertified listing', async () => {
  const { stage, now, asked } = await known(5);
  now.more = 1;
  stage.emulator.dashboard.deleteContact(addressOf(2));
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(false);
  expect(summary.problems).toMatchObject([{ key: addressOf(2), class: 'conflict' }]);
  expect(summary.problems[0]?.reason).toContain('vanished');
  expect(stage.snapshot.recorded.get('contact', addressOf(2))?.id).toBeUndefined();
  expect(countOf(asked, '/retrieve/')).toBe(1);
  asked.length = 0;
  await stage.sync();
  expect(countOf(asked, '/retrieve/')).toBe(0);
  expect(stage.writes()).toEqual([]);
});

test('a contact that is gone is created again on the proof of the same look', async () => {
  const { stage, now, asked } = await known(3, { policy: { missing: 'recreate' } });
  now.more = 1;
  stage.emulator.dashboard.deleteContact(addressOf(1));
  expect((await stage.sync()).contacts.applied).toMatchObject({ create: 1 });
  expect(countOf(asked, 'search=')).toBe(1);
});

test('a contact that is gone proves nothing about another one of its address', async () => {
  const { stage, now } = await known(3, { policy: { missing: 'recreate' } });
  stage.emulator.dashboard.deleteContact(addressOf(1));
  await stage.clock.advance(1);
  stage.emulator.dashboard.signUp({ email: addressOf(1), channels: [] });
  stage.emulator.dashboard.unsubscribe(addressOf(1));
  now.hides = (email) => email === addressOf(1);
  await stage.sync();
  expect(stage.writes()).toEqual([]);
});

test('a contact renamed on the platform is not gone, and not looked up under the new name', async () => {
  const { stage, now } = await known(3);
  const id = stage.emulator.world.contact(addressOf(1))?.id ?? '';
  stage.emulator.dashboard.editContact(id, { email: 'other@example.com' });
  now.hides = (email) => email === 'other@example.com';
  now.more = 1;
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(false);
  expect(stage.snapshot.recorded.get('contact', addressOf(1))?.id).toBe(id);
  expect(stage.writes()).toEqual([]);
});

test('a total that is too high costs no request for contacts that were listed', async () => {
  const { stage, now, asked } = await known(150);
  now.more = 7;
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(false);
  expect(countOf(asked, '/retrieve/')).toBe(0);
});

test.runIf(playsAll)(
  'a listing that skips nearly all contacts costs 500 requests a run, and completes in time',
  async () => {
    const { stage, now, asked } = await known(700);
    now.hides = (email) => email !== addressOf(1);
    const found = new Set<string>();
    for (let runs = 0; runs < 12; runs += 1) {
      asked.length = 0;
      const summary = await stage.sync();
      expect(countOf(asked, '/retrieve/')).toBe(500);
      expect(summary.certificate.platform).toBe(false);
      for (const line of asked) if (line.includes('/retrieve/')) found.add(line);
    }
    expect(found.size).toBeGreaterThan(650);
    expect(stage.writes()).toEqual([]);
  },
);

test.each([0.25, 0.999])(
  'one chunk of very many missing contacts is looked up, from %d on',
  async (at) => {
    const { stage } = ailing();
    const { snapshot } = stage;
    const clock = { ...stage.clock, sleep: async () => undefined };
    const row = { kind: 'contact', ownership: 'created', body: '{}', seenAt: 0 } as const;
    const keys = Array.from({ length: 6_000 }, (_, nth) => addressOf(nth)).toSorted();
    const listed = keys.filter((_, nth) => nth % 7 === 0);
    snapshot.transaction(() => {
      for (const key of keys) {
        snapshot.recorded.put({ ...row, key, id: key, shown: undefined, desired: undefined });
      }
      for (const key of listed) {
        const seen = { kind: 'contact', id: key, alias: key, body: '{}', fingerprint: '' } as const;
        snapshot.staging.addObserved([{ ...seen, createdAt: undefined }]);
      }
    });
    const rows = await unlisted({ snapshot, clock, random: () => at }, 500);
    const others = keys.filter((key) => !listed.includes(key));
    const from = Math.floor(at * (others.length - 500 + 1));
    expect(rows.map(({ key }) => key)).toEqual(others.slice(from, from + 500));
  },
);

test.each([
  [403, 'contacts.retrieve'],
  [400, undefined],
  [500, undefined],
])('nobody counts as gone after an answer %d', async (status, told) => {
  const { stage, now } = await known(40);
  now.more = 1;
  now.retrieve = refusal(status);
  for (let at = 0; at < 30; at += 1) stage.emulator.dashboard.deleteContact(addressOf(at));
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(false);
  expect(summary.contacts.conflicts).toBe(0);
  expect(summary.reasonCodes.some((code) => code !== 'note')).toBe(told !== undefined);
  expect(stage.snapshot.recorded.get('contact', addressOf(3))?.id).toBeDefined();
});

test('a failing platform is not asked about everybody', async () => {
  const { stage, now, asked } = await known(120);
  now.hides = () => true;
  now.retrieve = refusal(500);
  await stage.sync();
  expect(countOf(asked, '/retrieve/')).toBeLessThan(16 * 5);
});

test('a refused key ends the run', async () => {
  const { stage, now } = await known(3);
  now.hides = () => true;
  now.retrieve = refusal(401);
  expect((await stage.sync()).status).toBe('failed');
});

test('a run that is asked to stop looks nobody else up', async () => {
  const { stage, now, asked } = await known(100);
  now.hides = () => true;
  const stop = new AbortController();
  now.before = ({ path }) => {
    if (path.includes('/retrieve/')) stop.abort(new Interrupted('SIGTERM'));
  };
  const summary = await stage.sync({ stop: stop.signal });
  expect(summary.status).toBe('interrupted');
  expect(countOf(asked, '/retrieve/')).toBeLessThanOrEqual(16);
});

test('people who sign up during the look do not prevent the proof', async () => {
  const { stage, now, asked } = await known(250);
  let newcomers = 0;
  now.before = async ({ path }) => {
    if (!path.startsWith('/api/contacts/list')) return;
    await stage.clock.advance(1_000);
    newcomers += 1;
    stage.emulator.dashboard.signUp({ email: `new${newcomers}@example.com`, channels: [] });
  };
  now.hides = (email) => email === addressOf(17);
  const summary = await stage.sync();
  expect(summary.certificate.platform).toBe(true);
  expect(countOf(asked, '/retrieve/')).toBe(1);
});

test('a route that the key may not use prevents no opt-out', async () => {
  const { stage, now } = await known(3);
  now.more = 1;
  now.retrieve = refusal(403);
  stage.emulator.dashboard.deleteContact(addressOf(1));
  stage.people[0] = { ...stage.people[0], ch_news: 'no' };
  await stage.sync();
  expect(stage.writes()).toMatchObject([{ subscription: 'opt_out', status: 201 }]);
});
