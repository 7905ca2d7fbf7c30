/** The ledger's table: what enters it, what it forbids, and what takes an entry back. */
import { describe, expect, test } from 'vitest';
import type { Cause, Entry } from '../../src/domain/do-not-contact.ts';
import { canonicalJson } from '../../src/domain/record.ts';
import { memoriesOf } from '../../src/records/contact/consent/do-not-contact-entries.ts';
import { decodeContact } from '../../src/records/contact/observe/contact-state.ts';
import {
  ANN,
  bothIn,
  change,
  conflicts,
  remembered,
  shown,
  steps,
  wish,
  LATER,
  NEWS,
  NOON,
  open,
  PRODUCT,
  signal,
  states,
  type States,
  acked,
  entry as entryOf,
} from '../support/records/record-stage.ts';

const entry = (cause: Cause, more: Partial<Entry> = {}) =>
  entryOf(cause, cause === 'opt_out' ? NEWS : '*', { contact: 'con_1', ...more });
const DELETE = 'delete  → con_1';
const wantsNews = () => wish({ newsletter: 'yes' });
const decide = (known: Partial<States>, missing: 'respect' | 'recreate' = 'respect') =>
  open({ contacts: { missing } }).contacts.decide(states(known));
const ended = (known: Partial<States>) => (decide(known).news?.ends ?? []).map(({ seq }) => seq);

describe('the list receives', () => {
  const causes = (row: ReturnType<typeof remembered>) =>
    memoriesOf(decodeContact.recorded(row)).map(
      ({ part, cause, contact }) => `${part} ${cause} ${contact}`,
    );
  test.each([
    [remembered({ news: 'platform', product: 'us' }), [`${NEWS} opt_out con_1`]],
    [remembered({ news: 'in', product: 'in' }), []],
    [remembered({ id: undefined, news: 'in' }), ['* vanished con_1']],
    [remembered({ left: true }), ['* suppressed con_1']],
    [remembered({ seen: shown({ status: 'unsubscribed' }) }), ['* unsubscribed con_1']],
    [remembered({ seen: shown({ status: 'blocked' }) }), ['* blocked con_1']],
    [remembered({ seen: shown({ status: 'gone fishing' }) }), ['* unsubscribed con_1']],
    [remembered({ seen: shown({ suppressionReason: 'bounce' }) }), ['* bounce con_1']],
    [remembered({ seen: shown({ suppressionReason: 'Complaint' }) }), ['* complaint con_1']],
    [remembered({ seen: shown({ suppressionReason: 'Hard bounce' }) }), ['* bounce con_1']],
    [remembered({ seen: shown({ suppressionReason: 'spam, bounced' }) }), ['* complaint con_1']],
    [remembered({ seen: shown({ suppressionReason: 'by hand' }) }), ['* suppressed con_1']],
    [
      remembered({ seen: shown({ status: 'blocked', suppressedAt: '2026-01-01T00:00:00Z' }) }),
      ['* blocked con_1', '* suppressed con_1'],
    ],
  ])('%#', (row, memories) => {
    expect(causes(row)).toEqual(memories);
  });

  test('each observed opt-out once, with the decision', () => {
    const observed = [shown({ status: 'blocked', news: 'opt_out' })];
    const known = { desired: [wantsNews()], observed };
    const { adds } = decide(known).news ?? { adds: [] };
    expect(adds.map(({ part, cause }) => `${part} ${cause}`)).toEqual([
      `${NEWS} opt_out`,
      '* blocked',
    ]);
    const entries = adds.map((memory, seq) => entry(memory.cause, { ...memory, seq }));
    expect(decide({ ...known, entries }).news).toEqual({ adds: [], ends: [] });
  });

  test('an opt-out again when it may be later than the entry says', () => {
    const observed = [shown({ news: 'opt_out' })];
    const known = { recorded: remembered({ news: 'in' }), desired: [wantsNews()], observed };
    const entries = [entry('opt_out')];
    const adds = [{ part: NEWS, cause: 'opt_out', contact: 'con_1', by: LATER }];
    expect(decide({ ...known, entries }).news).toMatchObject({ adds, ends: [] });
  });

  test('an entry again when it lacks an id of the person', () => {
    const entries = [entry('blocked', { bears: false })];
    const { news } = decide({ desired: [wantsNews()], entries });
    expect(news?.adds).toMatchObject([{ cause: 'blocked', contact: 'con_1', by: NOON }]);
  });

  test('an opt-out that existed before ours (409) as the person’s', () => {
    const { contacts } = open();
    const before = remembered({ news: 'in' });
    const found = acked('con_1', { found: true });
    const after = contacts.acknowledge(before, change('opt_out', 'con_1'), found);
    const news = contacts.learn(change('opt_out', 'con_1'), after, []);
    expect(news.adds).toMatchObject([{ part: NEWS, cause: 'opt_out', contact: 'con_1' }]);
  });
});

test('an erased person is not recorded by an opt-out that the CRM wants', () => {
  const { contacts } = open();
  const known = { entries: [entry('erasure')], observed: [shown({ news: 'opt_in' })] };
  const decision = decide({ ...known, desired: [wish({ newsletter: 'no' })] });
  expect(decision).toMatchObject({ changes: [{ op: 'opt_out' }], note: undefined });
  expect(contacts.acknowledge(undefined, change('opt_out', 'con_1'), acked())).toBeUndefined();
});

test('a partly erased person is deleted as observed, whatever is recorded', async () => {
  const { contacts, emulator, run } = open({ absence: { deletes: 'created' } });
  emulator.seed.contact({ id: 'con_1', email: ANN });
  const recorded = remembered({ news: 'in' });
  const known = { recorded, desired: [wish({ archived: 'yes' })], entries: [entry('erasure')] };
  const lookAfter = (seen: Parameters<typeof shown>[0], first: string[] = []) => {
    const { note, changes } = contacts.decide(states({ ...known, observed: [shown(seen)] }));
    const planned = { note: undefined, steps: [...first, DELETE] };
    expect({ note, steps: steps({ changes }) }).toEqual(planned);
    const remove = changes.find(({ op }) => op === 'delete') ?? change('delete');
    const how = { recorded, fresh: true, listed: true, partial: false, signal };
    return run(contacts.look(remove, how));
  };
  expect(await lookAfter({})).toBeUndefined();
  const isIn = await lookAfter({ news: 'opt_in' }, ['opt_out ch_news → con_1']);
  expect(isIn).toMatchObject({ is: 'stale' });
});

describe('the list forbids', () => {
  const strict: Cause[] = ['unsubscribed', 'blocked', 'complaint', 'suppressed', 'erasure'];
  test.each<Cause>([...strict, 'bounce', 'vanished'])('%s: a creation', (cause) => {
    const decision = decide({ desired: [bothIn()], entries: [entry(cause)] });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS, PRODUCT]);
  });

  test.each<Cause>([...strict, 'bounce'])('%s: an opt-in of another contact', (cause) => {
    const observed = [shown({ id: 'con_2' })];
    const decision = decide({ desired: [wantsNews()], observed, entries: [entry(cause)] });
    expect({ steps: steps(decision), conflicts: conflicts(decision) }).toEqual({
      steps: [],
      conflicts: [NEWS],
    });
  });

  test('an opt-in to the channel of an opt-out, and to no other', () => {
    const decision = decide({ desired: [bothIn()], entries: [entry('opt_out')] });
    expect(steps(decision)).toEqual([`create ${PRODUCT}`]);
    expect(conflicts(decision)).toEqual([NEWS]);
  });

  test('no new contact under missing: recreate, nor after a new sign-up', () => {
    const entries = [entry('vanished')];
    const known = { desired: [wantsNews()], entries };
    expect(steps(decide(known, 'recreate'))).toEqual([`create ${NEWS}`]);
    expect(steps(decide({ ...known, observed: [shown({ id: 'con_2' })] }))).toEqual([
      `opt_in ${NEWS} → con_2`,
    ]);
  });

  test('no opt-out that the CRM states', () => {
    const observed = [shown({ id: 'con_2', news: 'opt_in' })];
    const known = { desired: [wish({ newsletter: 'no' })], observed, entries: [entry('erasure')] };
    expect(steps(decide(known))).toEqual([`opt_out ${NEWS} → con_2`]);
  });

  test('a change that is about to be sent', () => {
    const { contacts } = open();
    const forbids = (op: 'create' | 'opt_in' | 'opt_out', of: Entry) =>
      contacts.forbids(change(op), [of]);
    expect(forbids('opt_in', entry('opt_out'))).toBe(true);
    expect(forbids('opt_in', entry('opt_out', { part: PRODUCT }))).toBe(false);
    expect(forbids('opt_in', entry('vanished'))).toBe(false);
    expect(forbids('create', entry('vanished'))).toBe(true);
    expect(forbids('opt_out', entry('erasure'))).toBe(false);
    const newer = { ...change('opt_in'), body: JSON.stringify({ newer: NOON + 1 }) };
    expect(contacts.forbids(newer, [entry('opt_out')])).toBe(false);
    expect(contacts.forbids(newer, [entry('opt_out', { by: LATER })])).toBe(true);
    expect(contacts.forbids(newer, [entry('opt_out', { through: 'id' })])).toBe(true);
    expect(contacts.forbids(newer, [entry('blocked')])).toBe(true);
  });
});

describe('an entry ends', () => {
  const back = [shown({ news: 'opt_in' })];
  test.each<[Cause, number[]]>([
    ['opt_out', [1]],
    ['unsubscribed', [1]],
    ['blocked', [1]],
    ['bounce', [1]],
    ['complaint', [1]],
    ['suppressed', [1]],
    ['vanished', [1]],
    ['erasure', []],
  ])('%s: when the same contact is back', (cause, ends) => {
    expect(ended({ observed: back, entries: [entry(cause)] })).toEqual(ends);
  });

  test.each<Cause>(['opt_out', 'unsubscribed', 'blocked', 'bounce', 'complaint', 'suppressed'])(
    '%s: not with another contact of the address, nor while still out',
    (cause) => {
      const entries = [entry(cause)];
      expect(ended({ observed: [shown({ id: 'con_2', news: 'opt_in' })], entries })).toEqual([]);
      const still = [shown({ status: 'unsubscribed', news: 'opt_in' })];
      expect(ended({ observed: still, entries })).toEqual([]);
      const recorded = remembered({ news: 'in' });
      expect(ended({ recorded, sight: 'assumed', entries })).toEqual([]);
    },
  );

  test('vanished: with any contact of this address, or the same one of another', () => {
    const observed = [shown({ id: 'con_2' })];
    expect(ended({ observed, entries: [entry('vanished')] })).toEqual([1]);
    expect(ended({ observed, entries: [entry('vanished', { through: 'id' })] })).toEqual([]);
  });

  test.each([
    ['with the same contact of another address', '', [1]],
    ['not where another record wants it subscribed there', 'yes', []],
  ])('opt_out: %s', (_, newsletter, ends) => {
    const row = shown({ news: 'opt_in' });
    const others = { recorded: undefined, successors: [], origins: [] };
    const moved = { id: 'con_1', row, desired: [wish({ id: '8', newsletter })], ...others };
    const known = { desired: [wantsNews()], recorded: remembered({ news: 'platform' }) };
    expect(ended({ ...known, renamed: [moved], entries: [entry('opt_out')] })).toEqual(ends);
  });

  test('our own delete: without ownership, and everything else stays', () => {
    const { contacts } = open();
    const entries = [entry('vanished'), entry('opt_out', { seq: 2 }), entry('blocked', { seq: 3 })];
    const news = contacts.learn(change('delete', 'con_1'), undefined, entries);
    expect(news).toEqual({ adds: [], ends: [{ seq: 1, why: 'delete acknowledged' }] });
  });

  test('after an acknowledged opt-in that outweighed it', () => {
    const { contacts } = open();
    const optIn = change('opt_in', 'con_1');
    const after = contacts.acknowledge(remembered({ news: 'platform' }), optIn, acked());
    const learn = (row: typeof after) =>
      contacts.learn(optIn, row, [entry('opt_out'), entry('opt_out', { part: PRODUCT })]);
    expect(learn(after).ends).toHaveLength(1);
    // An entry of another address stands there.
    const elsewhere = entry('opt_out', { through: 'id' });
    expect(contacts.learn(optIn, after, [elsewhere]).ends).toEqual([]);
    // Taken back by the person before it was known to be done: it stands.
    const taken = acked('con_1', { undone: true });
    const undone = contacts.acknowledge(remembered({ news: 'in' }), optIn, taken);
    expect(learn(undone).ends).toEqual([]);
  });

  test.each(['opt_in', 'create'] as const)(
    "an operator's opt-out after an acknowledged %s that the CRM stated later, and no other",
    (op) => {
      const { contacts } = open();
      const after = remembered({ news: 'in' });
      const learn = (since?: number) =>
        contacts.learn({ ...change(op, 'con_1'), body: canonicalJson({ since }) }, after, [
          entry('operator', { part: NEWS }),
        ]).ends;
      expect(learn()).toEqual([]);
      expect(learn(NOON)).toEqual([]);
      expect(learn(NOON + 1)).toHaveLength(1);
    },
  );
});

test('messages for people hold no address', () => {
  const { problems } = decide({ desired: [bothIn()], entries: [entry('erasure')] });
  expect(JSON.stringify(problems.map(({ reason, fix }) => [reason, fix]))).not.toContain(ANN);
  expect(problems[0]?.reason).toContain('erased');
});
