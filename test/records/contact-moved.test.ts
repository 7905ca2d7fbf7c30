/** The table of absent-people.ts, row by row: what becomes of an old address. */
import { describe, expect, test } from 'vitest';
import { enrolmentBody } from '../../src/records/contact/observe/contact-state.ts';
import type { DesiredRow, RecordedRow } from '../../src/domain/record.ts';
import {
  change,
  remembered,
  shown,
  steps,
  wish,
  LATER,
  NOON,
  open,
  signal,
  states,
  type States,
} from '../support/records/record-stage.ts';

const kind = open().contacts;
const optOut = ['opt_out ch_news → con_1'];

/** Ann's old contact is in the newsletter; the CRM has the new address. */
function decide(successors: States['successors'], known: Partial<States> = {}) {
  const observed = [shown({ news: 'opt_in' })];
  return kind.decide(
    states({ recorded: remembered({ news: 'in' }), observed, successors, ...known }),
  );
}

const next = (record: Record<string, unknown>, recorded?: RecordedRow) => ({
  desired: [wish({ email: 'new@example.com', ...record })],
  recorded,
  vanished: false,
});

describe('the state of the new address decides', () => {
  const there = { in: remembered({ news: 'in' }), us: remembered({ news: 'us' }) };
  test.each<[string, DesiredRow[], RecordedRow | undefined, string[]]>([
    ['out', [wish({ newsletter: 'no' })], undefined, optOut],
    ['in, in', [wish({ newsletter: 'yes' })], there.in, optOut],
    ['in, left there', [wish({ newsletter: 'yes' })], remembered({ news: 'platform' }), optOut],
    ['in, out by us', [wish({ newsletter: 'yes' })], there.us, []],
    ['in, in nothing yet', [wish({ newsletter: 'yes' })], remembered(), []],
    ['in, not recorded', [wish({ newsletter: 'yes' })], undefined, []],
    ['in, vanished', [wish({ newsletter: 'yes' })], remembered({ id: undefined, news: 'in' }), []],
    ['no opinion, there', [wish()], remembered(), optOut],
    ['no opinion, not there', [wish()], undefined, []],
    ['broken, there', [wish({ newsletter: 'maybe' })], remembered(), []],
    ['gone, there', [wish({ archived: 'yes' })], there.in, []],
    ['gone and out', [wish({ archived: 'yes', newsletter: 'no' })], undefined, optOut],
  ])('%s', (_what, desired, recorded, expected) => {
    expect(steps(decide([{ desired, recorded, vanished: false }]))).toEqual(expected);
  });

  test('a vanished new contact does not count as done', () => {
    const gone = { ...next({ newsletter: 'yes' }, there.in), vanished: true };
    expect(steps(decide([gone]))).toEqual([]);
    const forbids = { ...next({ newsletter: 'no' }, there.in), vanished: true };
    expect(steps(decide([forbids]))).toEqual(optOut);
  });

  test('all of several new addresses have to be done, and one that forbids is enough', () => {
    const stands = next({ newsletter: 'yes' }, there.in);
    const waits = next({ newsletter: 'yes' });
    expect(steps(decide([stands, waits]))).toEqual([]);
    expect(steps(decide([stands, stands]))).toEqual(optOut);
    expect(steps(decide([waits, next({ newsletter: 'no' })]))).toEqual(optOut);
  });
});

test('only subscribed channels are opted out, of each contact of the address', () => {
  const successors = [next({ newsletter: 'yes' }, remembered({ news: 'in' }))];
  for (const news of ['opt_out', undefined] as const) {
    const observed = [shown(news ? { news } : {})];
    expect(steps(decide(successors, { observed }))).toEqual([]);
  }
  const observed = [
    shown({ id: 'con_1', news: 'opt_in' }),
    shown({ id: 'con_2', news: 'opt_in', product: 'opt_in' }),
  ];
  expect(steps(decide(successors, { observed }))).toEqual([
    ...optOut,
    'opt_out ch_news → con_2',
    'opt_out ch_product → con_2',
  ]);
});

test('a foreign contact is left alone', () => {
  const successors = [next({ newsletter: 'yes' }, remembered({ news: 'in' }))];
  expect(steps(decide(successors, { recorded: undefined }))).toEqual([]);
});

test('the opt-outs are marked for guards; those that the CRM states are not', () => {
  const moved = (body = '') => enrolmentBody.parse(JSON.parse(body)).moved;
  const successors = [next({ newsletter: 'yes' }, remembered({ news: 'in' }))];
  expect(decide(successors).changes.map(({ body }) => moved(body))).toEqual([true]);
  const stated = decide([], { desired: [wish({ newsletter: 'no' })] });
  expect(stated.changes.map(({ body }) => moved(body))).toEqual([false]);
});

describe('before it is sent', () => {
  const sent = { ...change('opt_out', 'con_1'), body: '{"moved":true}' };
  const known = { fresh: false, listed: false, partial: false, signal };
  const looks = async (email: string) => {
    const stage = open();
    const id = stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
    const recorded = remembered({ id, seen: shown({ id, news: 'opt_in' }) });
    const moved = { ...sent, target: id };
    const asked = { ...known, recorded };
    return {
      moved: await stage.run(stage.contacts.look(moved, asked)),
      fresh: await stage.run(stage.contacts.look(moved, { ...asked, fresh: true })),
      plain: await stage.run(stage.contacts.look({ ...moved, body: '{}' }, asked)),
    };
  };

  test('the contact is looked at, unless just observed: it may have the new address', async () => {
    expect(await looks('new@example.com')).toMatchObject({
      moved: { is: 'stale', observed: [{ alias: 'new@example.com' }] },
      fresh: undefined,
      plain: undefined,
    });
  });
  test('the opt-out is released when nothing has changed', async () => {
    expect((await looks('ann@example.com')).moved).toBeUndefined();
  });
});

test('the opt-out of the old address is ours, so that the CRM can return to it', () => {
  const successors = [next({ newsletter: 'yes' }, remembered({ news: 'in' }))];
  const { changes, note } = decide(successors);
  const ack = { is: 'acked', id: 'con_1', observed: undefined, found: false, at: LATER } as const;
  const recorded = kind.acknowledge(note, changes[0]!, ack);
  const back = { desired: [wish({ newsletter: 'yes' })], observed: [shown({ news: 'opt_out' })] };
  expect(steps(kind.decide(states({ ...back, recorded, at: NOON })))).toEqual([
    'opt_in ch_news → con_1',
  ]);
});

test('an opt-out of a renamed contact says nothing of the one that has the address now', () => {
  const row = { ...remembered({ news: 'in' }), id: undefined };
  const ack = { is: 'acked', id: 'con_2', observed: undefined, found: false, at: LATER } as const;
  const moved = { ...ack, renamed: true, elsewhere: true } as const;
  const recorded = kind.acknowledge(row, change('opt_out', 'con_2'), moved);
  expect(JSON.parse(recorded?.body ?? '')).toMatchObject({
    channels: { ch_news: { is: 'opt_in' } },
  });
});
