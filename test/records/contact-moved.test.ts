/** The table of absent-people.ts: when an old address is opted out, and when it is deleted. */
import { describe, expect, test } from 'vitest';
import { explainPerson } from '../../src/records/contact/consent/decide.ts';
import { rulesOf } from '../../src/records/contact/consent/facts.ts';
import { enrolmentBody } from '../../src/records/contact/observe/contact-state.ts';
import type { Entry } from '../../src/domain/do-not-contact.ts';
import { canonicalJson, type DesiredRow, type RecordedRow } from '../../src/domain/record.ts';
import {
  remembered,
  shown,
  steps,
  wish,
  fields,
  LATER,
  NEWS,
  open,
  states,
  type People,
  decoded,
  type States,
  entry as entryOf,
  acked,
  bodyOf,
  change,
  NOON,
  signal,
} from '../support/records/record-stage.ts';

const rulesWhere = (deletes: 'off' | 'created' | 'owned') => ({
  contacts: { absent: 'opt_out' as const },
  absence: { deletes },
});
const kinds = {
  off: open(rulesWhere('off')).contacts,
  created: open(rulesWhere('created')).contacts,
  owned: open(rulesWhere('owned')).contacts,
};
const optOut = ['opt_out ch_news → con_1'];
const remove = ['delete  → con_1'];
const inNews = () => wish({ newsletter: 'yes' });
const there = { in: remembered({ news: 'in' }), us: remembered({ news: 'us' }) };
const longMs = 20 * 3_600_000;
const absence = {
  readings: 2,
  firstAt: LATER - longMs,
  lastAt: LATER,
  ageMs: longMs,
  waitedMs: 0,
};

const next = (desired: DesiredRow[], recorded?: RecordedRow) => ({
  desired,
  recorded,
  vanished: false,
});
const stands = next([inNews()], there.in);
const waits = next([inNews()]);

/** Ann's old contact is in the newsletter; the CRM has the new address. */
const asked = (successors: States['successors'], known: Partial<States> = {}): States =>
  states({
    recorded: remembered({ news: 'in' }),
    observed: [shown({ news: 'opt_in' })],
    successors,
    ...known,
  });
const decide = (
  successors: States['successors'],
  known: Partial<States> = {},
  kind = kinds.created,
) => kind.decide(asked(successors, known));

describe('the state of the new address decides', () => {
  const known = remembered();
  const vanished = remembered({ id: undefined, news: 'in' });
  const outThere = remembered({ news: 'platform' });
  const no = wish({ newsletter: 'no' });
  const gone = wish({ archived: 'yes' });
  // Without and with deletes.
  test.each<[string, DesiredRow, RecordedRow | undefined, string[], string[]?]>([
    ['in, in', inNews(), there.in, optOut, remove],
    ['in, left there', inNews(), outThere, optOut, remove],
    ['in, out by us', inNews(), there.us, []],
    ['in, in nothing yet', inNews(), known, []],
    ['in, not recorded', inNews(), undefined, []],
    ['in, vanished', inNews(), vanished, []],
    ['no opinion, there', wish(), known, optOut, remove],
    ['no opinion, not there', wish(), undefined, []],
    ['out, there', no, known, optOut, [...optOut, ...remove]],
    ['out, not there', no, undefined, optOut],
    ['broken, there', wish({ newsletter: 'maybe' }), known, []],
    ['gone, there', gone, there.in, []],
    ['gone and out', wish({ archived: 'yes', newsletter: 'no' }), there.in, optOut],
  ])('%s', (_what, desired, recorded, kept, deleted = kept) => {
    const successors = [next([desired], recorded)];
    expect(steps(decide(successors, {}, kinds.off))).toEqual(kept);
    expect(steps(decide(successors))).toEqual(deleted);
  });

  test('a vanished new contact does not count as done', () => {
    const forbids = { ...next([no], there.in), vanished: true };
    for (const kind of [kinds.off, kinds.created]) {
      expect(steps(decide([{ ...stands, vanished: true }], {}, kind))).toEqual([]);
      expect(steps(decide([forbids], {}, kind))).toEqual(optOut);
    }
  });

  test('every channel has to be done: until then each is opted out by itself', () => {
    const both = [wish({ newsletter: 'yes', product: 'yes' })];
    expect(steps(decide([next(both, there.in)]))).toEqual(optOut);
    const whole = remembered({ news: 'in', product: 'in' });
    expect(steps(decide([next(both, whole)]))).toEqual(remove);
  });

  test('all of several new addresses have to be done, and one that forbids is enough', () => {
    const forbids = next([wish({ newsletter: 'no' })]);
    for (const [kind, done] of [
      [kinds.off, optOut],
      [kinds.created, remove],
    ] as const) {
      expect(steps(decide([stands, waits], {}, kind))).toEqual([]);
      expect(steps(decide([stands, stands], {}, kind))).toEqual(done);
      expect(steps(decide([stands, forbids], {}, kind))).toEqual(optOut);
      expect(steps(decide([waits, forbids], {}, kind))).toEqual(optOut);
    }
  });
});

describe('a channel in which the new address gets nothing more', () => {
  const past = LATER - 3_600_000;
  const entry = (cause: Entry['cause'], through: Entry['through'] = 'id') =>
    entryOf(cause, NEWS, { contact: 'con_0', by: past, through });
  const both = () => wish({ email: 'new@example.com', newsletter: 'yes', product: 'yes' });
  const product = remembered({ id: 'con_2', product: 'in' });
  const bound = (more: object = {}): RecordedRow => ({
    ...remembered({ product: 'in' }),
    body: canonicalJson({
      contacts: [],
      defaults: [],
      channels: {
        ch_news: { acked: 1, bound: ['1'], by: 'us', is: 'opt_out', ...more },
      },
    }),
  });
  const carrying = (more: object) => ({ former: [{ row: bound(more), seen: [] }] });
  const stated = { cause: 'stated', stated: ['2'] };
  const leftAll = { row: remembered({ left: true }), seen: [] };
  const leftNews = { row: remembered({ news: 'platform', product: 'in' }), seen: [] };

  /** The old contact is in the product channel; the new one too, and not in the newsletter. */
  function decideBoth(
    known: Partial<States>,
    kind: People = kinds.owned,
    old: Partial<States> = {},
  ) {
    const recorded = 'recorded' in known ? known.recorded : product;
    const seen = recorded?.id === undefined ? [] : [shown({ id: 'con_2', product: 'opt_in' })];
    const next = states({
      facts: { defaults: {}, namesAll: false },
      key: 'new@example.com',
      desired: [both()],
      recorded,
      observed: seen,
      ...known,
    });
    const successor = {
      desired: next.desired,
      recorded: next.recorded,
      vanished: false,
      states: next,
    };
    return kind.decide(
      states({
        recorded: remembered({ product: 'in' }),
        observed: [shown({ product: 'opt_in' })],
        successors: [successor],
        ...old,
      }),
    );
  }
  const where = (contacts: object) =>
    open({ contacts: { absent: 'opt_out', ...contacts }, absence: { deletes: 'owned' } }).contacts;

  test.each<[string, Partial<States>, People?]>([
    ['left under a former address (19)', { former: [leftNews] }],
    ['left all mail under a former address (19)', { former: [leftAll] }],
    ['our opt-out carries over (28)', carrying(stated)],
    ['on the do-not-contact list (23)', { entries: [entry('opt_out')] }],
    ['erased (24)', { entries: [{ ...entry('erasure'), part: '*' }] }],
    ['opted out by an operator (32)', { entries: [entry('operator', 'address')] }],
    [
      'left all mail at the new address (9)',
      { observed: [shown({ id: 'con_2', product: 'opt_in', status: 'unsubscribed' })] },
    ],
    [
      'seen unsubscribed at the new address (17)',
      { observed: [shown({ id: 'con_2', product: 'opt_in', news: 'opt_out' })] },
    ],
  ])('is in place, and the old contact is deleted: %s', (_what, known, kind) => {
    expect(steps(decideBoth(known, kind))).toEqual(remove);
  });

  test.each<[string, Partial<States>, People?]>([
    ['it is to be opted in, which may be held, refused or unanswered', {}],
    ['policy.optIns is off', { former: [leftNews] }, where({ optIns: 'off' })],
    ['the run is limited to other people', { unchosen: true, former: [leftNews] }],
    ['the channel is lost', { lost: new Set([NEWS]), former: [leftNews] }],
    ['our opt-out is withdrawn', carrying({ cause: 'stated', stated: ['1'] })],
    [
      'a bounce is listed for another address',
      { entries: [{ ...entry('bounce', 'address'), part: NEWS, cause: 'vanished' }] },
    ],
    [
      'several contacts share the new address',
      { observed: ['con_2', 'con_3'].map((id) => shown({ id, product: 'opt_in' })) },
    ],
  ])(
    'is not in place, and the old contact is only opted out where it is: %s',
    (_what, known, kind) => {
      expect(steps(decideBoth(known, kind))).toEqual(['opt_out ch_product → con_1']);
    },
  );

  test('is in place without a contact, if nothing is to be created anywhere', () => {
    const nobody = { recorded: undefined, observed: [] };
    const idle = { recorded: remembered({ news: 'platform' }), observed: [shown()] };
    const all = { former: [leftAll] };
    expect(steps(decideBoth({ ...nobody, ...all }, kinds.owned, idle))).toEqual(remove);
    const left = { observed: [shown({ product: 'opt_in', status: 'unsubscribed' })] };
    expect(steps(decideBoth({ ...nobody, ...all }, kinds.owned, left))).toEqual(remove);
    const one = [wish({ email: 'new@example.com', newsletter: 'yes' })];
    const barred = { ...nobody, desired: one, former: [leftNews] };
    expect(steps(decideBoth(barred, kinds.owned, idle))).toEqual(remove);
    const out = [wish({ email: 'new@example.com', newsletter: 'yes', product: 'no' })];
    expect(steps(decideBoth({ ...barred, desired: out }, kinds.owned, idle))).toEqual(remove);
    const leaving = ['opt_out ch_product → con_1'];
    expect(steps(decideBoth({ ...barred, desired: out }))).toEqual(leaving);
    // The old contact still gets mail, or something is to be created.
    expect(steps(decideBoth({ ...nobody, ...all }))).toEqual([]);
    expect(steps(decideBoth(barred))).toEqual([]);
    expect(steps(decideBoth({ ...nobody, former: [leftNews] }, kinds.owned, idle))).toEqual([]);
  });

  test('our opt-out at the old address outlives the delete that it allows', () => {
    const [change] = decideBoth(carrying(stated)).changes;
    const kept = kinds.owned.acknowledge(bound(stated), change!, acked());
    expect(kept).toMatchObject({ id: undefined, ownership: 'noted' });
    const next = { key: 'new@example.com', desired: [both()], former: [{ row: kept!, seen: [] }] };
    expect(steps(kinds.owned.decide(states(next)))).toEqual(['create ch_product']);
    expect(
      kinds.owned.acknowledge(remembered({ news: 'platform' }), change!, acked()),
    ).toBeUndefined();
  });
});

describe('the delete applies', () => {
  const adopted = { recorded: { ...remembered({ news: 'in' }), ownership: 'adopted' as const } };
  const foreign = { recorded: undefined };

  test.each<[string, Partial<States>, keyof typeof kinds, string[]]>([
    ['off: nobody', {}, 'off', optOut],
    ['created: a contact that we created', {}, 'created', remove],
    ['created: not an adopted contact', adopted, 'created', optOut],
    ['owned: an adopted contact too', adopted, 'owned', remove],
    ['nobody who is not ours', foreign, 'owned', []],
    ['nobody in a run that may not delete', { mayDelete: false }, 'owned', optOut],
    ['nobody upon an uncertified reading', { certified: false }, 'owned', []],
    ['who is subscribed to nothing as well', { observed: [shown()] }, 'created', remove],
    ['nobody while a CRM record of that address is missing', { strays: true }, 'created', []],
  ])('%s', (_what, known, policy, expected) => {
    expect(steps(decide([stands], known, kinds[policy]))).toEqual(expected);
  });

  test('to our contact of several; the others are opted out', () => {
    const observed = [shown({ news: 'opt_in' }), shown({ id: 'con_2', news: 'opt_in' })];
    expect(steps(decide([stands], { observed }))).toEqual(['opt_out ch_news → con_2', ...remove]);
  });

  test('after an opt-out while the platform refuses deletes', () => {
    expect(steps(decide([stands], { parked: [''] }))).toEqual([...optOut, ...remove]);
    expect(steps(decide([stands], { parked: ['ch_news'] }))).toEqual(remove);
  });
});

describe('together with absence', () => {
  test('a missing address is not deleted while the new one waits', () => {
    expect(steps(decide([waits], { absence }))).toEqual(optOut);
    expect(steps(decide([{ ...stands, vanished: true }], { absence }))).toEqual(optOut);
    const gone = next([wish({ archived: 'yes' })]);
    expect(steps(decide([gone], { absence }))).toEqual([...optOut, ...remove]);
  });
  test('a missing address is opted out first, an old one is not', () => {
    expect(steps(decide([stands], { absence }))).toEqual(remove);
    expect(steps(decide([stands], { absence, strays: true }))).toEqual([...optOut, ...remove]);
  });
});

test('the deletes are marked and counted by the guard, like the opt-outs', () => {
  const { changes } = decide([stands]);
  expect(changes.map(({ guard, phase }) => ({ guard, phase }))).toEqual([
    { guard: 'delete', phase: 2 },
  ]);
  const marks = changes.map(({ body }) => enrolmentBody.parse(JSON.parse(body)).moved);
  expect(marks).toEqual([true]);
});

test('names the gate that decided, in an explanation', () => {
  const { policy, absence: rules } = {
    policy: { absent: 'opt_out', missing: 'respect', resubscribe: 'never', optIns: 'on' } as const,
    absence: { deletes: 'created', deleteAfterMs: 0, absentReadings: 2, absentForMs: 1 } as const,
  };
  const told = (successors: States['successors'], known: Partial<States> = {}) =>
    explainPerson(decoded(asked(successors, known)), rulesOf(fields, policy, rules)).channels[0]
      ?.verdict;
  expect(told([stands])).toMatchObject({ by: 'address-replaced', action: 'delete' });
  expect(told([stands], { mayDelete: false })).toMatchObject({
    by: 'address-changed',
    action: 'opt_out',
  });
  expect(told([waits])).toMatchObject({ by: 'gone-kept', action: 'nothing' });
});

test('only subscribed channels are opted out, of each contact of the address', () => {
  for (const news of ['opt_out', undefined] as const) {
    const observed = [shown(news ? { news } : {})];
    expect(steps(decide([stands], { observed }, kinds.off))).toEqual([]);
  }
  const observed = [
    shown({ id: 'con_1', news: 'opt_in' }),
    shown({ id: 'con_2', news: 'opt_in', product: 'opt_in' }),
  ];
  expect(steps(decide([stands], { observed }, kinds.off))).toEqual([
    ...optOut,
    'opt_out ch_news → con_2',
    'opt_out ch_product → con_2',
  ]);
});

test('the opt-outs are marked for guards; those that the CRM states are not', () => {
  const moved = (body = '') => enrolmentBody.parse(JSON.parse(body)).moved;
  expect(decide([stands], {}, kinds.off).changes.map(({ body }) => moved(body))).toEqual([true]);
  const stated = decide([], { desired: [wish({ newsletter: 'no' })] }, kinds.off);
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
  const { changes, note } = decide([stands], {}, kinds.off);
  const recorded = kinds.off.acknowledge(note, changes[0]!, acked());
  const back = { desired: [inNews()], observed: [shown({ news: 'opt_out' })] };
  expect(steps(kinds.off.decide(states({ ...back, recorded, at: NOON })))).toEqual([
    'opt_in ch_news → con_1',
  ]);
});

test('an opt-out of a renamed contact says nothing of the one that has the address now', () => {
  const row = { ...remembered({ news: 'in' }), id: undefined };
  const moved = acked('con_2', { renamed: true, elsewhere: true });
  const recorded = kinds.off.acknowledge(row, change('opt_out', 'con_2'), moved);
  expect(bodyOf(recorded)).toMatchObject({
    channels: { ch_news: { is: 'opt_in' } },
  });
});
