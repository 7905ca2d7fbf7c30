/** A first creation that leaves nothing to decide, and all those that do. */
import { describe, expect, test } from 'vitest';
import { settles } from '../../src/records/contact/consent/decide.ts';
import type { Acked } from '../../src/records/change-outcome.ts';
import type { Decision } from '../../src/records/decision.ts';
import type { RecordProblem } from '../../src/domain/record-problem.ts';
import { canonicalJson, fingerprint, type RecordedRow } from '../../src/domain/record.ts';
import {
  ANN,
  bothIn,
  change,
  remembered,
  shown,
  wish,
  NOON,
  open,
  PRODUCT,
  states,
  decoded,
  type States,
  acked,
  entry,
} from '../support/records/record-stage.ts';

const { contacts } = open({ contacts: { missing: 'recreate' } });
const plain = shown({ news: 'opt_in' });
const inNews = () => wish({ newsletter: 'yes' });
const inNewsAlone = () => wish({ newsletter: 'yes', product: 'no' });
const left = entry('opt_out', PRODUCT);

/** Returns what is recorded of Ann after an acknowledged creation; undefined when there is none. */
function created(known: Partial<States>, ack: Partial<Acked> = {}): RecordedRow | undefined {
  const before = states(known);
  const creation = contacts.decide(before).changes.find(({ op }) => op === 'create');
  const wanted = before.desired[0]?.fingerprint;
  const answer = acked('con_1', { observed: plain, wanted, ...ack });
  return creation && contacts.acknowledge(before.recorded, creation, answer);
}

/** What would be decided then. */
function next(known: Partial<States>, recorded: RecordedRow) {
  return contacts.decide(states({ ...known, recorded, sight: 'assumed' }));
}

test.each([
  ['wanted in one channel, and shown in it', { desired: [inNews()] }],
  ['forbidden in another one, which does not show the person', { desired: [inNewsAlone()] }],
])('a decision settles: %s', (_, known) => {
  expect(created(known)?.desired).toBe(known.desired[0]?.fingerprint);
});

/** What plans nothing else, or nothing at all, by the rules of today. */
describe('a plan does not settle', () => {
  const settled = { desired: [inNews()] };
  const creation = change('create');
  const trouble: RecordProblem = {
    ...creation,
    class: 'conflict',
    cause: 'vanished',
    reason: '',
    fix: '',
  };
  const invalid = { ...inNews(), invalid: { reason: '', fix: '' } };
  test.each<[string, Partial<States>, Partial<Decision>]>([
    ['of an uncertified reading', { ...settled, certified: false }, {}],
    ['of an invalid record', { desired: [invalid] }, {}],
    ['of nobody’s record', {}, {}],
    ['that has a problem', settled, { problems: [trouble] }],
    ['that creates nobody', settled, { changes: [change('opt_in', 'con_1')] }],
    ['without a change', settled, { changes: [] }],
  ])('%s', (_, known, decision) => {
    const plan = { changes: [creation], problems: [] };
    expect(settles(decoded(states(settled)), plan)).toBe(true);
    expect(settles(decoded(states(known)), { ...plan, ...decision })).toBe(false);
  });
});

test('the plan has the same change when the person has repeated the same', () => {
  const said = inNews();
  const body = canonicalJson({ ...JSON.parse(said.body), consentAt: NOON });
  const again = { ...said, body, fingerprint: fingerprint(body) };
  const [before, after] = [said, again].map((one) => contacts.decide(states({ desired: [one] })));
  expect(before?.changes).toHaveLength(1);
  const planned = (decision = before) => decision?.changes.map(({ why: _, ...change }) => change);
  expect(planned(after)).toEqual(planned());
});

describe('a person is decided again', () => {
  const desired = [inNews()];
  const persons: [string, Partial<States>][] = [
    ['when wanted in another channel as well', { desired: [bothIn()] }],
    ['when two records name the person', { desired: [inNews(), inNews()] }],
    [
      'when the contact vanished once',
      { desired, recorded: remembered({ id: undefined, product: 'platform' }) },
    ],
    ['when the do-not-contact list has the person', { desired, entries: [left] }],
    ['when a change of the person was refused', { desired, parked: [PRODUCT] }],
    [
      'when the person had another address',
      { desired, former: [{ row: { ...remembered(), key: 'a@example.com' }, seen: [] }] },
    ],
    ['where the snapshot was put back', { desired, restored: true }],
    ['where a channel is lost', { desired, lost: new Set([PRODUCT]) }],
  ];
  test.each(persons)('%s', (_, known) => {
    const row = created(known);
    expect(row).toMatchObject({ key: ANN });
    expect(row?.desired).toBeUndefined();
  });

  const answers: [string, Partial<Acked>][] = [
    ['the person in another channel', { observed: shown({ news: 'opt_in', product: 'opt_in' }) }],
    ['the person out of another', { observed: shown({ news: 'opt_in', product: 'opt_out' }) }],
    ['the person in another channel alone', { observed: shown({ product: 'opt_in' }) }],
    ['the person out of all mail', { observed: shown({ news: 'opt_in', status: 'unsubscribed' }) }],
    ['nobody', { observed: undefined }],
    ['a contact that existed before', { found: true }],
    ['a contact that was read later', { late: true }],
    ['a state that the person has changed since', { undone: true }],
  ];
  test.each(answers)('when the answer shows %s', (_, ack) => {
    const row = created({ desired }, ack);
    expect(row).toMatchObject({ key: ANN });
    expect(row?.desired).toBeUndefined();
  });
});

test('no decision would change what a creation settles', () => {
  const wishes = ['', 'yes', 'no'].flatMap((newsletter) =>
    ['', 'yes', 'no'].map((product) => ({ desired: [wish({ newsletter, product })] })),
  );
  const words = ['opt_in', 'opt_out'] as const;
  const inNone = [{}, ...words.map((product) => ({ product }))];
  const answers = inNone
    .flatMap((other) => [other, ...words.map((news) => ({ ...other, news }))])
    .map((contact) => shown(contact));
  const settled = wishes.flatMap((known) =>
    answers.flatMap((observed) => {
      const row = created(known, { observed });
      return row?.desired === undefined ? [] : [{ row, decision: next(known, row) }];
    }),
  );
  // Wanted in one of the two, with no opinion on the other or forbidden there.
  expect(settled).toHaveLength(4);
  for (const { row, decision } of settled) {
    const { changes, problems, note, news } = decision;
    expect({ changes, problems, news }).toEqual({
      changes: [],
      problems: [],
      news: { adds: [], ends: [] },
    });
    // It does not matter who opted the person in.
    const body = row.body.replace('"by":"us","is":"opt_in"', '"by":"platform","is":"opt_in"');
    expect(note).toEqual({ ...row, body });
  }
});
