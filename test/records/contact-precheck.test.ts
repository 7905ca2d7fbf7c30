/** What is read before a contact is changed, and after a change that was not answered. */
import { describe, expect, test } from 'vitest';
import { Interrupted, Unavailable } from '../../src/domain/errors.ts';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import {
  ANN,
  change,
  remembered,
  shown,
  NEWS,
  open,
  passage,
  signal,
  type Fault,
} from '../support/records/record-stage.ts';

const LIST = 'GET /api/contacts/list';
const RETRIEVE = 'GET /api/contacts/retrieve';

function stage(...faults: Fault[]) {
  const world = open();
  faults.forEach(world.break);
  const { contacts, emulator } = world;
  return {
    ...world,
    seed: emulator.seed.contact,
    look: (
      what: ReturnType<typeof change>,
      recorded?: RecordedRow,
      fresh = false,
      listed = fresh,
    ) => world.run(contacts.look(what, { recorded, fresh, listed, partial: false, signal })),
    lookBlindly: (what: ReturnType<typeof change>, recorded: RecordedRow) =>
      world.run(
        contacts.look(what, { recorded, fresh: false, listed: false, partial: true, signal }),
      ),
    recover: (what: ReturnType<typeof change>) =>
      world.run(
        contacts.recover(what, {
          late: false,
          facts: { defaults: {} },
          recorded: undefined,
          signal,
        }),
      ),
  };
}

const subscribed = { id: 'con_1', email: ANN, channels: { [NEWS]: 'opt_in' as const } };
const known = (contact = shown({ news: 'opt_in' })) => remembered({ news: 'in', seen: contact });

describe('before a creation', () => {
  test('an exact search proves absence, whatever else it finds', async () => {
    const { look, seed, asked } = stage();
    seed({ email: `x${ANN}` });
    seed({ email: 'ann@example.com.au' });
    expect(await look(change('create'))).toBeUndefined();
    expect(asked).toHaveLength(1);
  });
  test('every contact that is found is decided again', async () => {
    const { look, seed } = stage();
    seed({ email: `x${ANN}` });
    const ids = [seed({ email: ' ANN@example.com' }), seed({ email: ANN, status: 'blocked' })];
    const outcome = await look(change('create'));
    expect(outcome).toMatchObject({ is: 'stale' });
    const observed = outcome?.is === 'stale' ? (outcome.observed ?? []) : [];
    expect(observed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  });
  test('a search of more than a page is read to its end', async () => {
    const { look, seed, asked } = stage();
    const id = seed({ email: ANN, createdAt: 0 });
    for (let n = 0; n < 150; n += 1) seed({ email: `${n}${ANN}` });
    expect(await look(change('create'))).toMatchObject({ is: 'stale', observed: [{ id }] });
    expect(asked).toHaveLength(2);
  });
  test('a fresh observation needs no look', async () => {
    const { look, seed, asked } = stage();
    seed({ email: ANN });
    expect(await look(change('create'), undefined, true)).toBeUndefined();
    expect(asked).toEqual([]);
  });
  test('a failed look sends nothing', async () => {
    const lost = stage({ on: LIST, commits: false, gives: 'lost' });
    expect(await lost.look(change('create'))).toMatchObject({ is: 'unsent' });
    const refused = stage({ on: LIST, commits: false, gives: { status: 401, body: {} } });
    expect(await refused.look(change('create'))).toMatchObject({ is: 'stopped', scope: 'run' });
  });
  test.each([
    [400, 'rejected'],
    [404, 'unsent'],
    [422, 'rejected'],
    [500, 'unsent'],
  ])('a look answered with %i: %s', async (status, is) => {
    const gives = { status, body: { message: 'Not found' } };
    for (const on of [LIST, RETRIEVE]) {
      const { look, seed } = stage(
        { on, commits: false, gives },
        { on: LIST, commits: false, gives },
      );
      const id = seed(subscribed);
      const what = on === LIST ? change('create') : change('opt_in', id);
      expect(await look(what, known())).toMatchObject({ is });
    }
  });
});

describe('before an opt_in of a known person', () => {
  const optIn = change('opt_in', 'con_1', 'ch_product');

  test('a contact as last observed is opted in', async () => {
    const { look, seed, asked } = stage();
    seed(subscribed);
    expect(await look(optIn, known())).toBeUndefined();
    expect(asked).toEqual([expect.stringContaining('con_1')]);
  });
  test.each([
    { status: 'unsubscribed' as const },
    { suppressionReason: 'complaint' },
    { channels: { [NEWS]: 'opt_out' as const } },
  ])('a contact that changed since is decided again: %j', async (how) => {
    const { look, seed } = stage();
    seed({ ...subscribed, ...how });
    expect(await look(optIn, known())).toMatchObject({ is: 'stale', observed: [{ id: 'con_1' }] });
  });
  test('a contact that is gone is decided again', async () => {
    expect(await stage().look(optIn, known())).toEqual({
      is: 'stale',
      observed: [],
      why: expect.any(String),
    });
  });
  test('an incomplete listing leads to a search for a second contact', async () => {
    const { lookBlindly, seed } = stage();
    seed(subscribed);
    expect(await lookBlindly(optIn, known())).toBeUndefined();
    const twin = seed({ email: ' ANN@example.com', channels: { ch_product: 'opt_out' } });
    const outcome = await lookBlindly(optIn, known());
    expect(outcome).toMatchObject({ is: 'stale' });
    const observed = outcome?.is === 'stale' ? (outcome.observed ?? []) : [];
    expect(observed.map(({ id }) => id).toSorted()).toEqual(['con_1', twin].toSorted());
  });
  test('a fresh observation needs no look', async () => {
    const { look, asked } = stage();
    expect(await look(optIn, known(), true)).toBeUndefined();
    expect(asked).toEqual([]);
  });
  test('a recorded id replaces one that was not planned', async () => {
    const { look, seed, asked } = stage();
    seed(subscribed);
    expect(await look(change('opt_in'), known())).toBeUndefined();
    expect(asked).toHaveLength(1);
  });
});

describe('before a change for somebody who had another address', () => {
  const old = 'old@example.com';
  const moved = (op: 'create' | 'opt_in') => ({
    ...change(op, op === 'create' ? undefined : 'con_1'),
    body: JSON.stringify({ former: [{ key: old, shown: [] }] }),
  });

  test.each(['create', 'opt_in'] as const)(
    'an answer in this run proves nothing of the former one: %s',
    async (op) => {
      const { look, seed } = stage();
      expect(await look(moved(op), known(), true, false)).toBeUndefined();
      const id = seed({ email: old, channels: { [NEWS]: 'opt_out' } });
      const stale = { is: 'stale', about: old, observed: [{ id }] };
      expect(await look(moved(op), known(), true, false)).toMatchObject(stale);
    },
  );
  test('a listing of this run has shown the former one, too', async () => {
    const { look, seed, asked } = stage();
    seed({ email: old, channels: { [NEWS]: 'opt_out' } });
    expect(await look(moved('opt_in'), known(), true, true)).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

test('an opt_out is never delayed by a look', async () => {
  const { look, asked } = stage();
  expect(await look(change('opt_out', 'con_1'), known())).toBeUndefined();
  expect(asked).toEqual([]);
});

describe('before a delete', () => {
  const remove = change('delete', 'con_1', '');

  test.each([true, false])('the contact is always retrieved (fresh: %j)', async (fresh) => {
    const { look, seed, asked } = stage();
    seed(subscribed);
    expect(await look(remove, known(), fresh)).toBeUndefined();
    expect(asked).toEqual([expect.stringContaining('con_1')]);
  });
  test('a contact in a channel that is not configured is decided again, and `undo` leaves it', async () => {
    const { look, emulator, seed } = stage();
    emulator.seed.channel({ id: 'ch_other', name: 'Other' });
    seed({ ...subscribed, channels: { [NEWS]: 'opt_in', ch_other: 'opt_out' } });
    const undone = { ...remove, body: '{"undone":{"run":"r1"}}' };
    const seen = shown({ news: 'opt_in' });
    const body = canonicalJson({ ...JSON.parse(seen.body), others: true });
    const noted = known({ ...seen, body });
    expect(await look(remove, known())).toMatchObject({ is: 'stale' });
    expect(await look(remove, noted)).toBeUndefined();
    expect(await look(undone, noted)).toMatchObject({ is: 'stale' });
  });
  test('a contact that changed since is decided again', async () => {
    const { look, seed } = stage();
    seed({ ...subscribed, channels: {} });
    expect(await look(remove, known())).toMatchObject({ is: 'stale' });
  });
});

describe('an unanswered change', () => {
  test('a creation is found by its exact address, and may be anybody’s', async () => {
    const { recover, seed } = stage();
    seed({ email: `x${ANN}`, channels: { [NEWS]: 'opt_in' } });
    expect(await recover(change('create'))).toMatchObject({ is: 'stale', observed: [] });
    const id = seed({ email: ANN, channels: { [NEWS]: 'opt_in' } });
    expect(await recover(change('create'))).toMatchObject({ is: 'acked', id, found: true });
  });
  test('a contact without the membership is decided again', async () => {
    const { recover, seed } = stage();
    const id = seed({ email: ANN, channels: { [NEWS]: 'opt_out' } });
    expect(await recover(change('create'))).toMatchObject({ is: 'stale', observed: [{ id }] });
  });
  test('two contacts of one address are decided again', async () => {
    const { recover, seed } = stage();
    for (const id of ['con_1', 'con_2']) seed({ ...subscribed, id });
    const outcome = await recover(change('create'));
    expect(outcome).toMatchObject({ is: 'stale', observed: [{}, {}] });
  });
  test.each(['opt_in', 'opt_out'] as const)('an %s is found by its id', async (op) => {
    const { recover, seed, asked } = stage();
    seed({ ...subscribed, channels: { [NEWS]: op } });
    expect(await recover(change(op, 'con_1'))).toMatchObject({
      is: 'acked',
      id: 'con_1',
      found: false,
      observed: { id: 'con_1' },
    });
    // Gone by its id proves nothing of the address: that is asked for by itself.
    expect(await recover(change(op, 'con_gone'))).toMatchObject({
      is: 'stale',
      observed: [{ id: 'con_1' }],
    });
    const lines = asked.map((line) => (line.startsWith(RETRIEVE) ? 'retrieve' : 'list'));
    expect(lines).toEqual(['retrieve', 'retrieve', 'list']);
  });
  test('an opt_out that is not shown did not take effect', async () => {
    const { recover, seed } = stage();
    seed(subscribed);
    const outcome = await recover(change('opt_out', 'con_1'));
    expect(outcome).toMatchObject({ is: 'stale', observed: [{ id: 'con_1' }] });
  });
  test('an opt_in may have been taken back when an opt_out is shown', async () => {
    const { recover, seed } = stage();
    seed({ ...subscribed, channels: { [NEWS]: 'opt_out' } });
    const outcome = await recover(change('opt_in', 'con_1'));
    expect(outcome).toMatchObject({ is: 'acked', observed: { id: 'con_1' } });
  });
  test('a delete is done when the contact is gone', async () => {
    const { recover, seed } = stage();
    expect(await recover(change('delete', 'con_1', ''))).toMatchObject({ is: 'acked' });
    seed(subscribed);
    expect(await recover(change('delete', 'con_1', ''))).toMatchObject({
      is: 'stale',
      observed: [{ id: 'con_1' }],
    });
  });
  test('recovery only reads', async () => {
    const { recover, seed, asked } = stage();
    seed(subscribed);
    for (const op of ['create', 'opt_in', 'opt_out', 'delete'] as const)
      await recover(change(op, op === 'create' ? undefined : 'con_1'));
    expect(asked.length).toBeGreaterThanOrEqual(4);
    expect(asked.filter((line) => !line.startsWith('GET'))).toEqual([]);
  });
  test('a 404 from something else proves nothing', async () => {
    const gives = { status: 404, body: '<html>' };
    const { recover } = stage({ on: RETRIEVE, commits: false, gives });
    await expect(recover(change('delete', 'con_1', ''))).rejects.toBeInstanceOf(Unavailable);
  });
});

test('a change interrupted before it was sent is unsent', async () => {
  const { contacts, run } = open();
  const stop = new AbortController();
  stop.abort(new Interrupted('SIGTERM'));
  expect(
    await run(contacts.send(change('create'), { ...passage, signal: stop.signal })),
  ).toMatchObject({ is: 'held' });
});

test('a page is listed in canonical form, with the clock of the platform', async () => {
  const { contacts, clock, seed } = stage();
  seed({ ...subscribed, email: ' Ann@Example.com' });
  const page = await clock.run(contacts.list({ page: 1, limit: 10 }, signal));
  expect(page).toMatchObject({ total: 1, date: clock.now(), rows: [{ id: 'con_1', alias: ANN }] });
  expect(page.rows[0]?.fingerprint).toBe(shown({ news: 'opt_in' }).fingerprint);
});
