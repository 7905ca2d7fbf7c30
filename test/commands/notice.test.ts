/** What is told of a mirror by itself: which notices, and when again. */
import { expect, test } from 'vitest';
import { type Attention } from '../../src/views/status/attention.ts';
import type { GuardClass } from '../../src/domain/guard-classes.ts';
import {
  after,
  type Found,
  noticesOf,
  type NoticeLines,
  titleOfNotice,
} from '../../src/views/status/trouble-notice.ts';

const is = (...codes: Attention['code'][]): Attention[] =>
  codes.map((code) => ({ code, text: `${code} it is`, fix: `mend ${code}`, since: null }));

const noon = Date.UTC(2026, 10, 20, 12);
const dayMs = 86_400_000;
const told = (code: string) => ({ [code]: { why: `${code} it was`, at: noon } });
const held: NoticeLines = { held: told('held') };
const failed: NoticeLines = { failed: told('run_failed') };

// prettier-ignore
test.each<[string, NoticeLines, Attention['code'][], string[]]>([
  ['all is well',                           {},     [],                              []],
  ['something is held',                     {},     ['held'],                        ['held: held it is']],
  ['it still is',                           held,   ['held'],                        []],
  ['it is over',                            held,   [],                              ['recovered: no longer: held it was']],
  ['a run failed',                          {},     ['run_failed'],                  ['failed: run_failed it is']],
  ['it failed again',                       failed, ['run_failed'],                  []],
  ['it fails for something else',           failed, ['ledger'],                      ['failed: ledger it is', 'recovered: no longer: run_failed it was']],
  ['of several reasons each',               {},     ['channel_lost', 'run_failed'],  ['failed: channel_lost it is', 'failed: run_failed it is']],
  ['who is still written to, or not erased', {},    ['opt_outs_refused'],            ['failed: opt_outs_refused it is']],
  ['an opt-out cannot be read',             {},     ['opt_outs_unreadable'],         ['unreadable: opt_outs_unreadable it is']],
  ['the CRM cannot be told',          {},     ['returns_stuck'],               ['failed: returns_stuck it is']],
  ['the CRM refuses',             {},     ['returns_rejected'],            ['failed: returns_rejected it is']],
  ['an erasure',                            {},     ['erasure_unfinished'],          ['failed: erasure_unfinished it is']],
  ['the audit log is lost or altered',      {},     ['audit_log'],                   ['failed: audit_log it is']],
  ['quarantined, for which runs fail',      {},     ['run_failed', 'quarantined'],   ['quarantined: quarantined it is']],
  ['quarantined, and failed before',        failed, ['run_failed', 'quarantined'],   ['quarantined: quarantined it is', 'recovered: no longer: run_failed it was']],
  ['not proven for long',                   {},     ['stale'],                       ['stale: stale it is']],
  ['one goes, another comes',               held,   ['stale'],                       ['recovered: no longer: held it was', 'stale: stale it is']],
  ['a threshold is crossed',                {},     ['alert_deviation', 'alert_run_time'], ['alert: alert_deviation it is', 'alert: alert_run_time it is']],
  ['many opt-outs by events',               {},     ['opt_outs_many'],               ['opt_outs: opt_outs_many it is']],
  ['all at once',                           {},     ['held', 'stale', 'run_failed'], ['held: held it is', 'failed: run_failed it is', 'stale: stale it is']],
  ['what mends itself, or is meant',        {},     ['paused', 'restored', 'run_interrupted', 'outcomes_unknown', 'never_proven', 'no_snapshot'], []],
])('%s', (_, before, codes, expected) => {
  const notices = noticesOf(before, is(...codes), noon);
  expect(notices.map(({ type, reason }) => `${type.slice(7)}: ${reason}`)).toEqual(expected);
  // Once they are told there is nothing more to tell.
  const told = notices.reduce((so, notice) => after(so, notice, noon), before);
  expect(noticesOf(told, is(...codes), noon + 2 * dayMs)).toEqual([]);
});

test('held opt-outs are reported once a day', () => {
  const daily = is('held').map((one): Attention => ({ ...one, isDaily: true }));
  const tell = (before: NoticeLines, at: number): [number, NoticeLines] => {
    const notices = noticesOf(before, daily, at);
    return [notices.length, notices.reduce((so, notice) => after(so, notice, at), before)];
  };
  const [first, told] = tell({}, noon);
  const [soon] = tell(told, noon + dayMs - 1);
  const [next, again] = tell(told, noon + dayMs);
  const [sooner] = tell(again, noon + dayMs + 1);
  expect([first, soon, next, sooner]).toEqual([1, 0, 1, 0]);
  expect(noticesOf(told, [], noon)).toMatchObject([
    { type: 'mirror.recovered', reason: 'no longer: held it is' },
  ]);
});

/** What was found by two runs in turn, and which notices the second one causes. */
const steps = (first: readonly Found[], second: readonly Found[]): string[] => {
  const told = noticesOf({}, first, noon).reduce((so, one) => after(so, one, noon), {});
  const notices = noticesOf(told, second, noon + 1);
  const since = notices.reduce((so, one) => after(so, one, noon + 1), told);
  expect(noticesOf(since, second, noon + 2)).toEqual([]);
  return notices.map(({ type, reason }) => `${type.slice(7)}: ${reason}`);
};

/** A plan of which nobody has decided yet. */
const plan = (hash: string, counts: Partial<Record<GuardClass, number>>): Found => {
  const undecided = { delete: 0, opt_out: 0, opt_in: 0, template: 0, ...counts };
  const about = { fix: '', since: null, plan: { hash, undecided } };
  return { code: 'held', text: `plan ${hash}`, ...about };
};
const a = plan('a', { opt_in: 44, opt_out: 6 });

test.each<[string, Found[], string[]]>([
  ['the same plan', [a], []],
  ['the same plan, partly approved', [plan('a', { opt_in: 40 })], []],
  ['a new plan of as many', [plan('b', { opt_in: 6, opt_out: 44 })], []],
  ['a new plan of exactly a tenth more', [plan('b', { opt_in: 49, opt_out: 6 })], []],
  ['a new plan of over a tenth more', [plan('b', { opt_in: 50, opt_out: 6 })], ['held: plan b']],
  ['a new plan of fewer', [plan('b', { opt_in: 1 })], []],
  ['a new plan of fewer of another class', [plan('b', { template: 1 })], ['held: plan b']],
  ['a further plan', [a, plan('b', { opt_in: 6 })], ['held: plan b']],
  ['a further plan of few', [a, plan('b', { opt_in: 5 })], []],
  ['the end', [], ['recovered: no longer: plan a']],
])('after the plan a was told, %s', (_, found, expected) => {
  expect(steps([a], found)).toEqual(expected);
});

test('a plan that grows slowly is reported when it is over a tenth larger than told', () => {
  let told = noticesOf({}, [plan('0', { opt_in: 100 })], noon).reduce(
    (so, one) => after(so, one, noon),
    {},
  );
  const reported = [105, 110, 111, 120, 123].filter((size) => {
    const notices = noticesOf(told, [plan(String(size), { opt_in: size })], noon);
    told = notices.reduce((so, one) => after(so, one, noon), told);
    return notices.length > 0;
  });
  expect(reported).toEqual([111, 123]);
});

test('each reason of failed and each lost channel begins and ends on its own', () => {
  const lost = (channel: string): Found => ({
    code: 'channel_lost',
    text: `${channel} is lost`,
    fix: '',
    since: null,
    channel,
  });
  const [refused] = is('opt_outs_refused');
  const rejected = is('returns_rejected');
  expect(steps(rejected, [...rejected, ...is('opt_outs_refused')])).toEqual([
    `failed: ${refused?.text}`,
  ]);
  expect(steps(is('opt_outs_refused', 'returns_rejected'), rejected)).toEqual([
    `recovered: no longer: ${refused?.text}`,
  ]);
  expect(steps([lost('news')], [lost('news'), lost('product')])).toEqual([
    'failed: product is lost',
  ]);
  expect(steps([lost('news'), lost('product')], [lost('product')])).toEqual([
    'recovered: no longer: news is lost',
  ]);
});

test('a run that an outage made fail is not told by itself, and is no recovery either', () => {
  const outage = is('platform_away');
  const explained = is('run_failed').map((one): Found => ({ ...one, isExplained: true }));
  expect(steps([], [...outage, ...explained])).toEqual(['failed: platform_away it is']);
  expect(steps([...outage, ...explained], explained)).toEqual([
    'recovered: no longer: platform_away it is',
  ]);
  expect(steps(is('run_failed'), [...outage, ...explained])).toEqual([
    'failed: platform_away it is',
  ]);
  expect(steps(explained, is('run_failed'))).toEqual(['failed: run_failed it is']);
});

test.each([
  ['mirror.failed', 'platform_away', 'the platform does not answer'],
  ['mirror.recovered', 'platform_away', 'the platform answers again'],
  ['mirror.recovered', 'channel_lost news', 'the channel is as it was'],
] as const)('the title of %s about %s says what', (type, subject, title) => {
  expect(titleOfNotice({ type, subject })).toBe(title);
});
