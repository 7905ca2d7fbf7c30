/** Whole people: several records, several contacts, both channels at once. */
import { describe, expect, test } from 'vitest';
import type { Decision } from '../../src/records/decision.ts';
import { canonicalJson, type ObservedRow, type RecordedRow } from '../../src/domain/record.ts';
import {
  bothIn,
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
  states,
  type States,
  acked,
  bodyOf,
} from '../support/records/record-stage.ts';

const keep = open().contacts;
const strict = open({ contacts: { absent: 'opt_out', missing: 'recreate' } }).contacts;

const decide = (known: Partial<States>): Decision => keep.decide(states(known));
const inNews = () => wish({ newsletter: 'yes' });
const outOfNews = () => wish({ newsletter: 'no' });
const channelsOf = (row: RecordedRow | undefined) => bodyOf(row).channels;

describe('several CRM records of one address', () => {
  const subscribed = [shown({ news: 'opt_in' })];

  test('the strictest decides, in any order', () => {
    for (const desired of [
      [inNews(), outOfNews()],
      [outOfNews(), inNews()],
    ]) {
      expect(steps(decide({ desired, observed: subscribed }))).toEqual(['opt_out ch_news → con_1']);
      expect(steps(decide({ desired }))).toEqual([]);
    }
  });
  test('one without an opinion does not outweigh another’s wish', () => {
    expect(steps(decide({ desired: [wish(), inNews()] }))).toEqual(['create ch_news']);
  });
  test('an invalid one allows no opt_in, and its opt-outs apply', () => {
    const broken = wish({ newsletter: 'maybe', product: 'no' });
    const desired = [bothIn(), broken];
    expect(steps(decide({ desired }))).toEqual([]);
    const observed = [shown({ product: 'opt_in' })];
    expect(steps(decide({ desired, observed }))).toEqual(['opt_out ch_product → con_1']);
  });
  test('the opt-out of a deleted one applies to the living one', () => {
    const desired = [inNews(), wish({ archived: 'yes', newsletter: 'no' })];
    expect(steps(decide({ desired, observed: subscribed }))).toEqual(['opt_out ch_news → con_1']);
  });
  test('the person counts as removed only when every record is', () => {
    const left = wish({ archived: 'yes' });
    const recorded = remembered({ news: 'in' });
    const known = { recorded, observed: subscribed };
    const all = strict.decide(states({ ...known, desired: [left, left] }));
    expect(steps(all)).toEqual(['opt_out ch_news → con_1']);
    for (const other of [inNews(), wish(), wish({ newsletter: 'maybe' })]) {
      const some = strict.decide(states({ ...known, desired: [left, other] }));
      expect(steps(some)).toEqual([]);
    }
  });
  test('an invalid one is present, even when it is flagged as deleted', () => {
    const desired = [wish({ archived: 'yes', id: '' })];
    const known = { recorded: remembered({ news: 'in' }), observed: subscribed, desired };
    expect(steps(strict.decide(states(known)))).toEqual([]);
  });
});

describe('several contacts of one address', () => {
  const two = [
    shown({ id: 'con_1', news: 'opt_in' }),
    shown({ id: 'con_2', news: 'opt_in', product: 'opt_out' }),
  ];

  test('an opt_out goes to each that is subscribed', () => {
    expect(steps(decide({ desired: [outOfNews()], observed: two }))).toEqual([
      'opt_out ch_news → con_1',
      'opt_out ch_news → con_2',
    ]);
    const observed = [
      shown({ id: 'con_1', news: 'opt_out' }),
      shown({ id: 'con_2', news: 'opt_in' }),
    ];
    expect(steps(decide({ desired: [outOfNews()], observed }))).toEqual([
      'opt_out ch_news → con_2',
    ]);
  });
  test('an opt_in goes to none: a conflict', () => {
    const observed = [shown({ id: 'con_1' }), shown({ id: 'con_2' })];
    const decision = decide({ desired: [inNews()], observed });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS]);
  });
  test('an opt-out on one is the person’s', () => {
    const decision = decide({ desired: [bothIn()], observed: two });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([PRODUCT]);
  });
  test('an unsubscribe of one keeps the person out', () => {
    const observed = [shown({ id: 'con_1' }), shown({ id: 'con_2', status: 'unsubscribed' })];
    expect(conflicts(decide({ desired: [inNews()], observed }))).toEqual([NEWS]);
  });
  test('a fast run afterwards opts none of them in either', () => {
    const { note } = decide({ desired: [inNews()], observed: two });
    const desired = [wish({ newsletter: 'yes', product: 'yes' })];
    const plain = [shown({ id: 'con_1', news: 'opt_in' }), shown({ id: 'con_2', news: 'opt_in' })];
    const { note: noted } = decide({ desired: [inNews()], observed: plain });
    for (const recorded of [note, noted]) {
      const next = decide({ desired, recorded, sight: 'assumed' });
      expect(steps(next)).toEqual([]);
    }
  });
  test('an opt-out on another contact than ours is not ours to take back', () => {
    const recorded = remembered({ news: 'us' });
    const observed = [shown({ id: 'con_2', news: 'opt_out' })];
    const decision = decide({ desired: [inNews()], recorded, observed });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS]);
    expect(channelsOf(decision.note)[NEWS]).toMatchObject({ is: 'opt_out', by: 'platform' });
  });
  test('an unsubscribe of one prevents a new contact after all vanished', () => {
    const observed = [shown({ id: 'con_1' }), shown({ id: 'con_2', status: 'unsubscribed' })];
    const { note } = strict.decide(states({ desired: [inNews()], observed }));
    expect(steps(strict.decide(states({ desired: [inNews()], recorded: note })))).toEqual([]);
  });
  test('the person’s opt-out stays theirs when we opt the other contact out', () => {
    const observed = [
      shown({ id: 'con_1', news: 'opt_out' }),
      shown({ id: 'con_2', news: 'opt_in' }),
    ];
    const { note, changes } = decide({ desired: [outOfNews()], observed });
    const recorded = keep.acknowledge(note, changes[0]!, acked('con_2'));
    const alone = { recorded, observed: [shown({ id: 'con_1', news: 'opt_out' })] };
    expect(steps(decide({ ...alone, desired: [inNews()] }))).toEqual([]);
  });
});

describe('a new person', () => {
  test('is created in the first channel and opted into the others', () => {
    const decision = decide({ desired: [bothIn()] });
    expect(steps(decision)).toEqual(['create ch_news', 'opt_in ch_product']);
    expect(decision).toMatchObject({ note: undefined, adopts: false, problems: [] });
  });
  test('is created in the first channel that is wanted', () => {
    expect(steps(decide({ desired: [wish({ product: 'yes' })] }))).toEqual(['create ch_product']);
  });
  test('is not created to be opted out, or without a channel', () => {
    for (const desired of [outOfNews(), wish(), wish({ archived: 'yes' })])
      expect(decide({ desired: [desired] })).toMatchObject({ changes: [], note: undefined });
  });
  test('is created on an assumption, too: the look before sending proves absence', () => {
    expect(steps(decide({ desired: [inNews()], sight: 'assumed' }))).toEqual(['create ch_news']);
  });
});

describe('an uncertified reading', () => {
  test('leads to opt_outs only, and settles nothing', () => {
    const desired = [wish({ newsletter: 'yes', product: 'no' })];
    const observed = [shown({ product: 'opt_in' })];
    const decision = decide({ desired, observed, certified: false });
    expect(steps(decision)).toEqual(['opt_out ch_product → con_1']);
    expect(decision.note?.desired).toBeUndefined();
    expect(steps(decide({ desired: [bothIn()], certified: false }))).toEqual([]);
  });
  test('settles nobody, even when there is nothing to do', () => {
    const observed = [shown({ news: 'opt_in' })];
    const known = { desired: [inNews()], observed, recorded: remembered({ news: 'in' }) };
    expect(decide(known).note?.desired).toBe(inNews().fingerprint);
    expect(decide({ ...known, certified: false }).note?.desired).toBeUndefined();
  });
});

describe('a fast run', () => {
  const recorded = remembered({ news: 'in', seen: shown({ news: 'opt_in' }) });

  test('takes the recorded state for the observed one', () => {
    const decision = decide({ desired: [bothIn()], recorded, sight: 'assumed' });
    expect(steps(decision)).toEqual(['opt_in ch_product → con_1']);
    expect(decision.note).toMatchObject({ id: 'con_1', shown: recorded.shown, seenAt: NOON });
  });
  test('leaves it to a full run to see that a contact vanished', () => {
    const decision = decide({ desired: [bothIn()], recorded });
    expect(decision.note).toMatchObject({ id: undefined, shown: undefined, seenAt: LATER });
    expect(conflicts(decision)).toEqual([NEWS, PRODUCT]);
  });
  test('knows that afterwards', () => {
    const { note } = decide({ desired: [bothIn()], recorded });
    const next = decide({ desired: [bothIn()], recorded: note, sight: 'assumed' });
    expect(steps(next)).toEqual([]);
    expect(conflicts(next)).toEqual([NEWS, PRODUCT]);
  });
});

describe('a contact of ours that vanished', () => {
  const gone = (known: Parameters<typeof remembered>[0]) =>
    strict.decide(states({ desired: [bothIn()], recorded: remembered(known) }));
  test('recreate: is created again where our opt-out is taken back', () => {
    expect(steps(gone({ news: 'us' }))).toEqual(['create ch_news', 'opt_in ch_product']);
  });
  test('recreate: is never created in a channel that the person left', () => {
    expect(steps(gone({ left: true, news: 'in' }))).toEqual([]);
    const decision = gone({ news: 'platform', product: 'in' });
    expect(steps(decision)).toEqual(['create ch_product']);
    expect(conflicts(decision)).toEqual([NEWS]);
  });
  test('recreate: the conflict does not advise the setting that is set', () => {
    const { problems } = gone({ left: true, news: 'in' });
    expect(problems.map(({ part }) => part)).toEqual([NEWS, PRODUCT]);
    expect(problems.filter(({ fix }) => fix.includes('policy.missing'))).toEqual([]);
  });
  test('recreate: is not created only to be opted out', () => {
    const recorded = remembered({ news: 'in' });
    expect(steps(strict.decide(states({ desired: [outOfNews()], recorded })))).toEqual([]);
  });
});

describe('adoption', () => {
  const observed = [shown({ news: 'opt_in' })];

  test('records an existing contact that the CRM wants as adopted and settled', () => {
    const decision = decide({ desired: [inNews()], observed });
    expect(decision).toMatchObject({ changes: [], problems: [], adopts: true });
    expect(decision.note).toMatchObject({
      id: 'con_1',
      ownership: 'adopted',
      desired: inNews().fingerprint,
      shown: observed[0]?.fingerprint,
      seenAt: LATER,
    });
    expect(channelsOf(decision.note)[NEWS]?.is).toBe('opt_in');
  });
  test('does not apply to a contact that the CRM deleted or does not name', () => {
    for (const desired of [[], [wish({ archived: 'yes', newsletter: 'yes' })]])
      expect(strict.decide(states({ desired, observed }))).toMatchObject({
        changes: [],
        note: undefined,
        adopts: false,
      });
  });
  test('waits for a complete reading: a line of a broken file may only look like a record', () => {
    const decision = decide({ desired: [inNews()], observed, certified: false });
    expect(decision).toMatchObject({ changes: [], adopts: false, note: { ownership: 'noted' } });
    const recorded = { ...remembered({ news: 'in' }), ownership: 'noted' as const };
    const next = { recorded, desired: [inNews()], observed };
    expect(decide({ ...next, certified: false })).toMatchObject({ adopts: false });
    expect(decide(next)).toMatchObject({ adopts: true, note: { ownership: 'adopted' } });
  });
  test('does not repeat for a known person', () => {
    const recorded = remembered({ news: 'in' });
    expect(decide({ desired: [inNews()], recorded, observed })).toMatchObject({
      adopts: false,
      note: { ownership: 'created' },
    });
  });
  test('attributes an existing opt-out to the platform', () => {
    const decision = decide({ desired: [inNews()], observed: [shown({ news: 'opt_out' })] });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS]);
    expect(channelsOf(decision.note)[NEWS]).toMatchObject({ is: 'opt_out', by: 'platform' });
  });
});

describe('a suppressed person', () => {
  test.each([
    { status: 'unsubscribed' },
    { status: 'blocked' },
    { status: 'paused' },
    { suppressionReason: 'bounce' },
    { suppressedAt: '2026-01-01T00:00:00.000Z' },
    { suppressionReason: '', suppressedAt: '2026-01-01T00:00:00.000Z' },
  ])('%j counts as unsubscribed', (how) => {
    const decision = decide({ desired: [inNews()], observed: [shown(how)] });
    expect(steps(decision)).toEqual([]);
    expect(conflicts(decision)).toEqual([NEWS]);
  });
});

test('an opt-out after a lost membership is later than a consent in between', () => {
  const { contacts } = open({ contacts: { resubscribe: 'newer' } });
  const { body, ...row } = inNews();
  const willed = { ...row, body: canonicalJson({ ...JSON.parse(body), consentAt: LATER + 1 }) };
  const at = LATER + 2;
  const seen = shown({ news: 'opt_in' });
  for (const [lost, expected] of [
    [shown(), []],
    [shown({ news: 'opt_out' }), ['opt_in ch_news → con_1']],
  ] as const) {
    const before = contacts.decide(
      states({ observed: [lost], recorded: remembered({ news: 'in', seen }) }),
    );
    const observed = [shown({ news: 'opt_out' })];
    const known = { desired: [willed], observed, recorded: before.note, at, by: at };
    const decision = contacts.decide(states(known));
    expect(steps(decision)).toEqual(expected);
    const made = channelsOf(decision.note)[NEWS]?.made?.by;
    expect(made).toBe(expected.length > 0 ? LATER : at);
  }
});

test('a bounce of a former address says nothing about the new one', () => {
  const seen = shown({ news: 'opt_in', suppressionReason: 'bounce' });
  const row = { ...remembered({ news: 'in', seen }), key: 'old@example.com' };
  const decision = decide({ desired: [inNews()], former: [{ row, seen: [] }] });
  expect([steps(decision), conflicts(decision)]).toEqual([['create ch_news'], []]);
});

describe('an opt-out shown under a former address', () => {
  const at = (updatedAt: string) => shown({ news: 'opt_out', product: 'opt_in', updatedAt });
  const [making] = decide({ desired: [wish({ product: 'yes' })] }).changes;
  const made = keep.acknowledge(
    undefined,
    making!,
    acked('con_1', { at: NOON, observed: at('made') }),
  );
  const conflictsAfter = (
    row: RecordedRow | undefined,
    seen: ObservedRow[],
    put: Partial<States> = {},
  ) => {
    const former = [{ row: { ...row!, key: 'old@example.com' }, seen }];
    return conflicts(decide({ desired: [bothIn()], former, ...put }));
  };

  test('is nobody’s when a creation left it by default, unless the person was in since', () => {
    for (const seen of [[], [at('made')]]) expect(conflictsAfter(made, seen)).toEqual([]);
    const joined = shown({ news: 'opt_in', product: 'opt_in' });
    const { note } = decide({ recorded: made, observed: [joined] });
    expect(conflictsAfter(note, [at('later')])).toEqual([NEWS]);
  });
  test('is the person’s when another contact of the address shows it', () => {
    const other = shown({ id: 'con_2', news: 'opt_out', product: 'opt_in' });
    expect(conflictsAfter(made, [at('made'), other])).toEqual([NEWS]);
    // And where that one is gone again.
    const { note } = decide({ recorded: made, observed: [at('made'), other] });
    expect(channelsOf(note)).toMatchObject({ [NEWS]: { is: 'opt_out', by: 'platform' } });
    expect(conflictsAfter(note, [at('made')])).toEqual([NEWS]);
  });
  test('may be the person’s after a restore, unless the contact would show that', () => {
    const ours = remembered({ news: 'us', product: 'in', seen: at('made') });
    const put = (enrolmentMoves: boolean) => {
      return { restored: true, facts: { defaults: {}, enrolmentMoves } };
    };
    for (const row of [made, ours]) {
      expect(conflictsAfter(row, [at('made')], put(true))).toEqual([]);
      expect(conflictsAfter(row, [at('made')], put(false))).toEqual([NEWS]);
      expect(conflictsAfter(row, [at('later')], put(true))).toEqual([NEWS]);
    }
  });
});
