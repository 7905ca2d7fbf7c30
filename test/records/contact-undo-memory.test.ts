/** What `undo` leaves behind of a person, and what ends it. */
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/domain/record.ts';
import {
  ANN,
  conflicts,
  remembered,
  steps,
  wish,
  LATER,
  NEWS,
  NOON,
  open,
  states,
  done,
  isIn,
  isOut,
  ours,
  run,
  says,
  undone,
  withNews,
  type States,
  acked,
  newsOf,
} from '../support/records/record-stage.ts';

const kind = open().contacts;
const recorded = remembered({ news: 'in' });
const toIn = `opt_in ${NEWS} → con_1`;

describe('what was undone', () => {
  const at = (consentAt: number) => {
    const row = says('yes');
    return { ...row, body: canonicalJson({ ...Object(JSON.parse(row.body)), consentAt }) };
  };
  const decide = (known: Partial<States>) =>
    kind.decide(states({ recorded: undone, observed: isOut, ...known }));

  test.each<[string, Partial<States>, string[]]>([
    ['the same statement', { desired: [says('yes')] }, []],
    ['the same of another record', { desired: [wish({ id: '7', newsletter: 'yes' })] }, []],
    ['the same at an older time', { desired: [at(NOON - 1)] }, []],
    ['the same at the time of the undo', { desired: [at(NOON)] }, []],
    ['the same at a time in the future', { desired: [at(LATER + 1)], by: LATER }, []],
    ['the same at a later time', { desired: [at(NOON + 1)] }, [toIn]],
    ['the same at a later and at an older time', { desired: [at(NOON + 1), at(NOON - 1)] }, []],
    ['another statement', { desired: [says('no')] }, []],
    ['a reading that is not complete', { desired: [says('no')], certified: false }, []],
  ])('is not done again after %s', (_what, known, expected) => {
    expect(steps(decide(known))).toEqual(expected);
  });

  test('is a conflict while the CRM states the same', () => {
    const { problems } = decide({ desired: [says('yes')] });
    expect(problems).toMatchObject([{ key: ANN, part: NEWS, cause: 'undone' }]);
    expect(conflicts(decide({ desired: [says('')] }))).toEqual([]);
  });

  test.each(['', 'no'])('is done again after the CRM has stated "%s"', (word) => {
    const { note } = decide({ desired: [says(word)] });
    expect(newsOf(note)?.undone).toBeUndefined();
    const next = decide({ recorded: note, desired: [says('yes')] });
    expect(steps(next)).toEqual([toIn]);
  });

  test('stays remembered while the person is missing from the CRM', () => {
    const { note } = decide({ desired: [] });
    expect(newsOf(note)?.undone).toEqual({ run, said: 'opt_in' });
    expect(steps(decide({ recorded: note, desired: [says('yes')] }))).toEqual([]);
  });

  test('is compared with the first complete statement if there was none then', () => {
    const unknown = withNews({ ...ours, cause: 'undone', bound: ['1'], undone: { run } });
    const { note } = decide({ recorded: unknown, desired: [says('yes')] });
    expect(newsOf(note)?.undone).toEqual({ run, said: 'opt_in' });
  });
});

describe('an opt-in that overrode an opt-out', () => {
  const type = open({ absence: { deletes: 'created' } }).contacts;
  const undo = (body: object, observed: States['observed'], op: 'create' | 'opt_in' = 'create') =>
    type.undo(states({ recorded, observed, desired: [says('yes')] }), {
      run,
      changes: [done(op, { body: canonicalJson(body) })],
    });
  const after = (body: object, op?: 'create' | 'opt_in') => {
    const { decision } = undo(body, isIn, op);
    expect(steps(decision)).toEqual([`opt_out ${NEWS} → con_1`]);
    const [change] = decision.changes;
    return newsOf(change && type.acknowledge(recorded, change, acked()));
  };
  const person = { is: 'opt_out', by: 'platform' } as const;

  test('of the person that the journal did not keep leaves one that nothing older ends', () => {
    const made = { after: null, by: LATER };
    expect(after({ newer: NOON })).toEqual({ ...person, doubtful: true, made });
  });

  test.each<[string, object, string[]]>([
    ['that the CRM stated and nobody sent', { withdraws: true }, ['1']],
    ['that an operator stated', { since: NOON }, []],
    ['that an operator settled', { changed: 'then' }, []],
    ['that both stated', { since: NOON, withdraws: true }, []],
  ])('%s leaves an opt-out of ours, which the conflict names as undone', (_what, body, stated) => {
    const restored = after(body, 'opt_in');
    const cause = { by: 'us', cause: 'stated', stated, undone: { run, said: 'opt_in' } };
    expect(restored).toEqual({ is: 'opt_out', acked: LATER, bound: ['1'], ...cause });
    const now = (desired: States['desired'], row = restored && withNews(restored)) =>
      kind.decide(states({ recorded: row, observed: isOut, desired }));
    expect(now([says('yes')]).problems).toMatchObject([{ part: NEWS, cause: 'undone' }]);
    const next = now([says('yes')], now([says('')]).note);
    expect(steps(next)).toEqual(stated.length > 0 ? [toIn] : []);
  });

  test('restores the opt-out of the person, made between its time and now', () => {
    const overrides = { by: 'platform', after: 5 };
    expect(after({ overrides, newer: NOON })).toEqual({ ...person, made: { after: 5, by: LATER } });
  });

  test('restores an opt-out that the CRM had stated, for the record that stated it', () => {
    const overrides = { after: null, by: 'us', cause: 'stated', bound: ['5'], stated: ['5'] };
    const restored = { is: 'opt_out', by: 'us', cause: 'stated', stated: ['5'], acked: LATER };
    expect(after({ overrides }, 'opt_in')).toMatchObject({ ...restored, bound: ['1', '5'] });
  });

  test('that nobody sent is not recorded as ours if the contact is gone', () => {
    const { decision } = undo({ withdraws: true }, []);
    const made = { after: null, by: LATER };
    expect(newsOf(decision.note)).toEqual({ ...person, doubtful: true, made });
  });

  test('counts again although the contact is gone, and says so', () => {
    const overrides = { by: 'platform', after: 5 };
    const { decision, cannot } = undo({ overrides, newer: NOON }, []);
    expect([decision.changes, cannot]).toMatchObject([[], [{ rule: 'contact-gone' }]]);
    expect(newsOf(decision.note)).toMatchObject({ ...person, made: { after: 5 } });
    expect(decision.news?.adds.map(({ cause }) => cause)).toEqual(['opt_out', 'vanished']);
  });
});
