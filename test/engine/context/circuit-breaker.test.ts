/** When sending is pointless: by the outcomes so far. */
import { expect, test } from 'vitest';
import type { Op } from '../../../src/domain/change.ts';
import { Rejected } from '../../../src/domain/errors.ts';
import { createCircuitBreaker } from '../../../src/engine/context/circuit-breaker.ts';
import { acked, type SendOutcome } from '../../../src/records/change-outcome.ts';

const change = (op: Op, part = 'ch_news', guard?: 'delete') => ({
  kind: 'contact' as const,
  key: 'ann@example.com',
  op,
  part,
  target: '1',
  body: '{}',
  phase: 0,
  guard,
});

const refused = (status: number): SendOutcome => ({
  is: 'rejected',
  status,
  reason: 'no',
  fix: '',
});
const done = acked({ id: '1' });
const why = 'away';
const unsent: SendOutcome = { is: 'unsent', why };
const unread: SendOutcome = { is: 'unsent', why, isAnswered: true };
const unknown: SendOutcome = { is: 'unknown', why };
const stale: SendOutcome = { is: 'stale', observed: undefined, why };
const held: SendOutcome = { is: 'held', why };
const times = (n: number, outcome: SendOutcome) => Array<SendOutcome>(n).fill(outcome);

type Stops = 'nothing' | 'run' | 'most' | 'part' | 'route';

/** What the breaker holds back, from which follows what has been stopped. */
function stopped(breaker: ReturnType<typeof createCircuitBreaker>): Stops {
  if (breaker.stopped()) return 'run';
  const holds = (op: Op, part?: string, guard?: 'delete') => breaker.holds(change(op, part, guard));
  if (holds('create', 'ch_product') && holds('delete', '')) return 'most';
  if (holds('create', 'ch_product')) return 'route';
  return holds('create') ? 'part' : 'nothing';
}

// prettier-ignore
const table: [what: string, op: Op, outcomes: SendOutcome[], stops: Stops][] = [
  ['four without an answer',             'create', times(4, unsent), 'nothing'],
  ['five without an answer',             'create', [...times(3, unsent), ...times(2, unknown)], 'run'],
  ['an answer in between',               'create', [...times(4, unsent), done, ...times(4, unsent)], 'nothing'],
  ['a refusal in between',               'create', [...times(4, unsent), refused(409), ...times(4, unsent)], 'nothing'],
  ['readings that are refused',          'create', [...times(4, unsent), ...times(9, unread), ...times(4, unsent)], 'nothing'],
  ['nothing that was sent in between',   'create', [...times(4, unsent), stale, held, unsent], 'run'],
  ['four strangers',                     'create', times(4, refused(404)), 'nothing'],
  ['five strangers',                     'create', times(5, refused(404)), 'part'],
  ['five strangers after a creation',    'create', [done, ...times(5, refused(404))], 'nothing'],
  ['five contacts that are gone',        'opt_in', times(5, refused(404)), 'nothing'],
  ['nineteen refusals',                  'opt_in', times(19, refused(400)), 'nothing'],
  ['twenty refusals',                    'opt_in', times(20, refused(400)), 'most'],
  ['eight of twenty refused',            'opt_in', [...times(12, done), ...times(8, refused(400))], 'nothing'],
  ['nine of twenty refused',             'opt_in', [...times(11, done), ...times(9, refused(400))], 'most'],
  ['any number that was so already',     'opt_in', times(40, refused(409)), 'nothing'],
  ['any number that is stale or held',   'opt_in', [...times(40, stale), ...times(40, held)], 'nothing'],
  ['the key refused',                    'opt_in', [{ is: 'stopped', scope: 'run', why }], 'run'],
  ['the channel unknown',                'opt_in', [{ is: 'stopped', scope: 'part', why }], 'part'],
  ['the route refused',                  'opt_in', [{ is: 'stopped', scope: 'route', route: 'contacts.enrol', why }], 'route'],
];

test.each(table)('%s, of %s', (_, op, outcomes, stops) => {
  const breaker = createCircuitBreaker();
  for (const outcome of outcomes) breaker.note(change(op), outcome);
  expect(stopped(breaker)).toBe(stops);
  expect(breaker.reasons()).toHaveLength(stops === 'nothing' ? 0 : 1);
  expect(breaker.endsEarly('contact')).toBe(['run', 'most', 'route'].includes(stops));
  // Nothing but a stop of the run, of the route or of the channel keeps a stated opt-out back.
  expect(breaker.holds(change('opt_out'))).toBe(['run', 'part', 'route'].includes(stops));
  expect(breaker.holds(change('opt_out', 'ch_news', 'delete'))).toBe(stops !== 'nothing');
  expect(breaker.holds({ ...change('update', ''), kind: 'template' })).toBe(
    stops === 'run' || stops === 'most',
  );
});

test('an unknown channel is named with what corrects it', () => {
  const breaker = createCircuitBreaker();
  breaker.note(change('opt_in'), { is: 'stopped', scope: 'part', why });
  expect(breaker.reasons()).toMatchObject([{ fix: expect.stringContaining('contacts.channels') }]);
});

test('five strangers after an opt-in stop the channel: that proves no creation there', () => {
  const breaker = createCircuitBreaker();
  breaker.note(change('opt_in'), done);
  for (const outcome of times(5, refused(404))) breaker.note(change('create'), outcome);
  expect(stopped(breaker)).toBe('part');
});

test.each([
  [[], 'nothing'],
  [[done], 'fine'],
  [times(3, refused(400)), 'refused'],
  [[...times(3, done), ...times(2, refused(400))], 'fine'],
  [[...times(20, refused(400)), ...times(60, done)], 'stopped'],
] as const)('the verdict on a run, case %#', (outcomes, verdict) => {
  const breaker = createCircuitBreaker();
  for (const outcome of outcomes) breaker.note(change('opt_in'), outcome);
  expect(breaker.verdict()).toBe(verdict);
});

test.each([
  [times(19, unread), false],
  [times(20, unread), true],
  [[...times(19, unread), stale, unread], false],
])(
  'twenty refused readings in a row, and no other, stop the route of readings: case %#',
  (outcomes, is) => {
    const breaker = createCircuitBreaker();
    for (const outcome of outcomes) breaker.note(change('create'), outcome);
    expect(breaker.blinds(change('create'))).toBe(is);
    expect(breaker.holds(change('opt_out'))).toBe(false);
  },
);

test('a look that is refused stops its route, and blinds what needs it', () => {
  const breaker = createCircuitBreaker();
  const route = 'contacts.list';
  const refusal = { route, status: 403, why: '', fix: '' };
  expect(breaker.refuses(new Rejected('no', { ...refusal, status: 404 }))).toBe(false);
  expect(breaker.refuses(new Rejected('no', refusal))).toBe(true);
  const blind = (['create', 'opt_in', 'opt_out', 'delete'] as const).filter((op) =>
    breaker.blinds(change(op)),
  );
  expect(blind).toEqual(['create']);
});
