/** What is told of a mirror by itself: which notices, once each. */
import { expect, test } from 'vitest';
import type { Attention } from '../../src/cli/status/attention-list.ts';
import { after, noticesOf, type NoticeLines } from '../../src/cli/status/trouble-notice.ts';

const is = (...codes: Attention['code'][]): Attention[] =>
  codes.map((code) => ({ code, text: `${code} it is`, fix: `mend ${code}` }));

const noon = Date.UTC(2026, 10, 20, 12);
const dayMs = 86_400_000;
const held: NoticeLines = { held: 'held it was' };
const failed: NoticeLines = { failed: 'run_failed it was' };

// prettier-ignore
test.each<[string, NoticeLines, Attention['code'][], string[]]>([
  ['all is well',                           {},     [],                              []],
  ['something is held',                     {},     ['held'],                        ['held: held it is']],
  ['it still is',                           held,   ['held'],                        []],
  ['it is over',                            held,   [],                              ['recovered: no longer: held it was']],
  ['a run failed',                          {},     ['run_failed'],                  ['failed: run_failed it is']],
  ['it failed again',                       failed, ['run_failed'],                  []],
  ['it fails for something else',           failed, ['ledger'],                      []],
  ['of several reasons the gravest',        {},     ['channel_lost', 'run_failed'],  ['failed: channel_lost it is']],
  ['who is still written to, or not erased', {},    ['opt_outs_refused'],            ['failed: opt_outs_refused it is']],
  ['the CRM cannot be told',          {},     ['returns_stuck'],               ['failed: returns_stuck it is']],
  ['the CRM refuses',             {},     ['returns_rejected'],            ['failed: returns_rejected it is']],
  ['an erasure',                            {},     ['erasure_unfinished'],          ['failed: erasure_unfinished it is']],
  ['the audit log is lost or altered',      {},     ['audit_log'],                   ['failed: audit_log it is']],
  ['quarantined, for which runs fail',      {},     ['run_failed', 'quarantined'],   ['quarantined: quarantined it is']],
  ['quarantined, and failed before',        failed, ['run_failed', 'quarantined'],   ['quarantined: quarantined it is', 'recovered: no longer: run_failed it was']],
  ['not proven for long',                   {},     ['stale'],                       ['stale: stale it is']],
  ['one goes, another comes',               held,   ['stale'],                       ['recovered: no longer: held it was', 'stale: stale it is']],
  ['a threshold is crossed',                {},     ['alert_deviation', 'alert_run_time'], ['alert: alert_deviation it is']],
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
  // What an earlier version told has no time: it is told once more.
  expect(tell(held, noon)[0]).toBe(1);
  expect(noticesOf(told, [], noon)).toMatchObject([
    { type: 'mirror.recovered', reason: 'no longer: held it is' },
  ]);
});
