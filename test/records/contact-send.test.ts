/** How a change of a contact is sent, and what its outcome is called. */
import { describe, expect, test } from 'vitest';
import { observedBody } from '../../src/records/contact/observe/contact-state.ts';
import { contactRoute } from '../../src/records/contact/contacts.ts';
import type { SendOutcome } from '../../src/records/change-outcome.ts';
import {
  ANN,
  change,
  NEWS,
  open,
  passage,
  refused,
  type Fault,
} from '../support/records/record-stage.ts';

const ENROL = 'POST /api/contacts/channel';
const LIST = 'GET /api/contacts/list';
const RETRIEVE = 'GET /api/contacts/retrieve';
const DELETE = 'DELETE /api/contacts';

function stage(...faults: Fault[]) {
  const world = open();
  faults.forEach(world.break);
  const { emulator, contacts } = world;
  return {
    ...world,
    seed: emulator.seed.contact,
    ann: () => emulator.world.contact(ANN),
    news: () => emulator.world.contact(ANN)?.channels.find(({ id }) => id === NEWS)?.subscription,
    send: (...what: Parameters<typeof change>) =>
      world.run(contacts.send(change(...what), passage)),
    count: (line: string) => world.asked.filter((asked) => asked.startsWith(line)).length,
  };
}

const shownBy = (outcome: SendOutcome | undefined) =>
  outcome?.is === 'acked' && outcome.observed
    ? observedBody.parse(JSON.parse(outcome.observed.body))
    : undefined;

describe('a creation', () => {
  test('names the new contact and what it shows', async () => {
    const { send, ann } = stage();
    const outcome = await send('create');
    expect(outcome).toMatchObject({ is: 'acked', id: ann()?.id, found: false });
    expect(shownBy(outcome)).toEqual({
      changed: ann()?.updatedAt,
      id: ann()?.id,
      left: false,
      channels: { [NEWS]: 'opt_in' },
    });
  });
  test('is acknowledged by a raw row, too', async () => {
    const body = { contact: { id: 'con_raw', organizationId: 'org' }, event: 'x' };
    const { send } = stage({ on: ENROL, commits: false, gives: { status: 200, body } });
    expect(await send('create')).toEqual({
      is: 'acked',
      id: 'con_raw',
      observed: undefined,
      found: false,
    });
  });
  test('without a contact in the answer is read back by its exact address', async () => {
    const { send, ann, seed } = stage({
      on: ENROL,
      commits: true,
      gives: { status: 201, body: {} },
    });
    seed({ email: `x${ANN}`, channels: { [NEWS]: 'opt_in' } });
    const outcome = await send('create');
    expect(outcome).toMatchObject({ is: 'acked', id: ann()?.id });
    expect(shownBy(outcome)?.channels).toEqual({ [NEWS]: 'opt_in' });
  });
  test('is unknown when it cannot be read back', async () => {
    const { send } = stage({ on: ENROL, commits: false, gives: { status: 201, body: {} } });
    expect(await send('create')).toMatchObject({ is: 'unknown' });
  });
  test.each([{ status: 500, body: {} }, refused(429), 'lost' as const])(
    'is never called unsent after an acknowledgement when reading back fails: %j',
    async (gives) => {
      const { send, ann } = stage(
        { on: ENROL, commits: true, gives: { status: 201, body: {} } },
        { on: LIST, commits: false, gives },
      );
      const outcome = await send('create');
      expect(ann()).toBeDefined();
      expect(['acked', 'unknown']).toContain(outcome?.is);
    },
  );
  test('finds a person who is enrolled already', async () => {
    const { send, seed } = stage();
    const id = seed({ email: ANN, channels: { [NEWS]: 'opt_in' } });
    expect(await send('create')).toMatchObject({ is: 'acked', id, found: true });
  });
  test.each([502, 503, 504])('answered with %i is unknown, and not sent again', async (status) => {
    const { send, count, ann } = stage({ on: ENROL, commits: true, gives: { status, body: {} } });
    expect(await send('create')).toMatchObject({ is: 'unknown' });
    expect(count(ENROL)).toBe(1);
    expect(ann()).toBeDefined();
  });
  test('answered with 500 is sent again', async () => {
    const once = { on: ENROL, times: 1, commits: false, gives: { status: 500, body: {} } };
    const { send, count, news } = stage(once);
    expect(await send('create')).toMatchObject({ is: 'acked', found: false });
    expect(count(ENROL)).toBe(2);
    expect(news()).toBe('opt_in');
  });
  test.each([true, false])('without an answer is unknown (committed: %j)', async (commits) => {
    const { send, count } = stage({ on: ENROL, commits, gives: 'lost' });
    expect(await send('create')).toMatchObject({ is: 'unknown' });
    expect(count(ENROL)).toBe(1);
  });
  test('with an unreadable answer is unknown', async () => {
    const gives = { status: 200, body: '<html>' };
    expect(await stage({ on: ENROL, commits: true, gives }).send('create')).toMatchObject({
      is: 'unknown',
    });
  });
  test('in an unknown channel is rejected: 404', async () => {
    expect(await stage().send('create', undefined, 'ch_none')).toMatchObject({
      is: 'rejected',
      status: 404,
    });
  });
});

describe('a change of a known person', () => {
  test.each([
    ['opt_in', 'opt_out'],
    ['opt_out', 'opt_in'],
  ] as const)('uses the id for an %s, and is acknowledged', async (op, before) => {
    const { send, seed, news, asked } = stage();
    const id = seed({ email: ANN, channels: { [NEWS]: before } });
    expect(await send(op, id)).toEqual({ is: 'acked', id, observed: undefined, found: false });
    expect(news()).toBe(op);
    expect(asked).toHaveLength(1);
  });
  test('does not bring back a deleted contact by id: stale', async () => {
    const { send, ann } = stage();
    expect(await send('opt_in', 'con_gone')).toMatchObject({ is: 'stale', observed: [] });
    expect(ann()).toBeUndefined();
  });
  test('stops the channel on a 404 when the contact exists', async () => {
    const { send, seed } = stage();
    const id = seed({ email: ANN });
    const outcome = await send('opt_in', id, 'ch_none');
    expect(outcome).toMatchObject({ is: 'stopped', scope: 'part' });
    expect(outcome).toHaveProperty('why', expect.stringContaining('ch_none'));
  });
  test.each(['opt_in', 'opt_out'] as const)('is found on a 409 to an %s that holds', async (op) => {
    const { send, seed } = stage();
    const id = seed({ email: ANN, channels: { [NEWS]: op } });
    const outcome = await send(op, id);
    expect(outcome).toMatchObject({ is: 'acked', id, found: true });
    expect(shownBy(outcome)?.channels).toEqual({ [NEWS]: op });
  });
  test.each([
    ['opt_out', 'opt_in', 'opt them out on the platform'],
    ['opt_in', 'opt_out', expect.stringContaining('or bring the CRM in line with it')],
  ] as const)('is rejected on a 409 to an %s that does not hold', async (op, before, fix) => {
    const { send, seed } = stage({ on: ENROL, commits: false, gives: refused(409) });
    const id = seed({ email: ANN, channels: { [NEWS]: before } });
    const outcome = await send(op, id);
    expect(outcome).toMatchObject({ is: 'rejected', status: 409, fix });
    expect(outcome).toHaveProperty('reason', expect.stringContaining('does not change'));
  });
  test.each([refused(404), { status: 500, body: {} }])(
    'is not sent on a 409 that cannot be read back: %j',
    async (gives) => {
      const conflict = { on: ENROL, commits: false, gives: refused(409) };
      const { send, seed } = stage(conflict, { on: LIST, commits: false, gives });
      seed({ email: ANN, channels: { [NEWS]: 'opt_out' } });
      expect(await send('create')).toMatchObject({ is: 'unsent' });
    },
  );
  test('is unknown on a 409 that does not hold, after an attempt that may have acted', async () => {
    const once = { on: ENROL, times: 1, commits: false, gives: { status: 500, body: {} } };
    const { send, seed } = stage(once, { on: ENROL, commits: false, gives: refused(409) });
    const id = seed({ email: ANN, channels: { [NEWS]: 'opt_in' } });
    expect(await send('opt_out', id)).toMatchObject({ is: 'unknown' });
  });
  test('is stale on a 409 when the contact is gone', async () => {
    const { send } = stage({ on: ENROL, commits: false, gives: refused(409) });
    expect(await send('opt_out', 'con_gone')).toMatchObject({ is: 'stale', observed: [] });
  });
  test.each([500, 502, 503, 504])('is sent again by id after %i', async (status) => {
    const once = { on: ENROL, times: 1, commits: true, gives: { status, body: {} } };
    const { send, seed, news } = stage(once);
    const id = seed({ email: ANN, channels: { [NEWS]: 'opt_in' } });
    expect(await send('opt_out', id)).toMatchObject({ is: 'acked', id });
    expect(news()).toBe('opt_out');
  });
  test.each([true, false])(
    'counts an opt_out of an earlier attempt as ours only when seen in: %j',
    async (seen) => {
      const once = { on: ENROL, times: 1, commits: true, gives: { status: 500, body: {} } };
      const { run, contacts, seed } = stage(once);
      const id = seed({ email: ANN, channels: { [NEWS]: 'opt_in' } });
      const outcome = await run(contacts.send(change('opt_out', id), { ...passage, seen }));
      expect(outcome).toMatchObject({ is: 'acked', id, found: !seen, doubtful: !seen });
    },
  );
  test('is unknown without an answer', async () => {
    const { send, count } = stage({ on: ENROL, commits: true, gives: 'lost' });
    expect(await send('opt_out', 'con_1')).toMatchObject({ is: 'unknown' });
    expect(count(ENROL)).toBe(1);
  });
});

describe('a refusal', () => {
  test.each([400, 422])('with %i rejects this change, in the platform’s words', async (status) => {
    const { send } = stage({ on: ENROL, commits: false, gives: refused(status) });
    expect(await send('create')).toEqual({
      is: 'rejected',
      status,
      reason: `no ${status}: because`,
      fix: 'mend it',
    });
  });
  test('with 401 stops the run, with 403 the route, with endless 429 the route', async () => {
    const of = (status: number) =>
      stage({ on: ENROL, commits: false, gives: refused(status) }).send('create');
    expect(await of(401)).toMatchObject({ is: 'stopped', scope: 'run' });
    expect(await of(403)).toMatchObject({ is: 'stopped', scope: 'route' });
    expect(await of(429)).toMatchObject({ is: 'stopped', scope: 'route' });
  });
  test('prints no address', async () => {
    const body = { message: `${ANN} is odd`, why: `see ${ANN}`, fix: `mend ${ANN}` };
    const { send } = stage({ on: ENROL, commits: false, gives: { status: 400, body } });
    expect(JSON.stringify(await send('create'))).not.toContain('@');
  });
});

describe('a delete', () => {
  test('is acknowledged, also when the contact is gone already', async () => {
    const { send, seed, ann } = stage();
    const id = seed({ email: ANN });
    expect(await send('delete', id)).toMatchObject({ is: 'acked', id });
    expect(ann()).toBeUndefined();
    expect(await send('delete', id)).toMatchObject({ is: 'acked', id });
  });
  test('is read back when the answer does not tell success', async () => {
    const gives = { status: 200, body: { message: 'Contact not found' } };
    const done = stage({ on: DELETE, commits: true, gives });
    const id = done.seed({ email: ANN });
    expect(await done.send('delete', id)).toMatchObject({ is: 'acked', id });
    const undone = stage({ on: DELETE, commits: false, gives });
    const still = undone.seed({ email: ANN });
    expect(await undone.send('delete', still)).toMatchObject({ is: 'rejected', status: 200 });
  });
  test('is never called unsent after it may have acted when reading back fails', async () => {
    const { send, seed, ann } = stage(
      { on: DELETE, commits: true, gives: { status: 200, body: {} } },
      { on: RETRIEVE, commits: false, gives: 'lost' },
    );
    const outcome = await send('delete', seed({ email: ANN }));
    expect(ann()).toBeUndefined();
    expect(outcome).toMatchObject({ is: 'unknown' });
  });
  test('is unknown without an answer', async () => {
    const { send } = stage({ on: DELETE, commits: true, gives: 'lost' });
    expect(await send('delete', 'con_1')).toMatchObject({ is: 'unknown' });
  });
});

test('every change but a delete is an enrolment', () => {
  const routes = (['create', 'opt_in', 'opt_out', 'delete'] as const).map(contactRoute);
  const enrol = 'contacts.enrol';
  expect(routes).toEqual([enrol, enrol, enrol, 'contacts.delete']);
});
