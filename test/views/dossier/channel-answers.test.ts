/** The state that a dossier tells where the audit log and the do-not-contact list differ. */
import { describe, expect, test } from 'vitest';
import { answersOf, type Evidence } from '../../../src/views/dossier/dossier-document.ts';

const noon = '2026-03-01T12:00:00Z';
const one = '2026-03-01T13:00:00Z';
const two = '2026-03-01T14:00:00Z';
const asOf = '2026-03-02T00:00:00Z';

type Entry = Evidence['entries'][number];
type Listed = Evidence['listed'][number];

function write(at: string, rest: Partial<Entry> = {}): Entry {
  const told = { op: 'subscribe', part: 'news', outcome: 'acked', after: 'opt_in' };
  return { seq: 3, at, type: 'write', person: 'mark', ...told, ...rest };
}

function listed(cause: Listed['cause'], rest: Partial<Listed> = {}): Listed {
  return { channel: 'news', cause, through: 'address', after: null, until: one, ...rest };
}

const before = [write(noon)];
const out = [listed('opt_out')];
const seen = `opted out, by ${one} (seen on the platform / do-not-contact list)`;
const past: [string, Entry[], Listed[], string | null, string][] = [
  ['nothing on the list', before, [], 'opt_in', 'subscribed at'],
  ['an opt-out after the write', before, out, 'opt_out', seen],
  ['an opt-out of all mail', before, [listed('unsubscribed', { channel: '*' })], 'opt_out', seen],
  ['an opt-out of another channel', before, [listed('opt_out', { channel: 'b' })], 'opt_in', 'sub'],
  ['a settlement', before, [listed('operator')], 'opt_out', '(decided by an operator / do-not'],
  ['an opt-out and no write', [], out, 'opt_out', seen],
  ['an opt-out before a later opt-in', [write(two)], out, 'opt_in', 'subscribed at'],
  ['an opt-out before an unanswered one', [write(two, { outcome: 'unknown' })], out, null, 'not c'],
  ['an opt-out in the same second', [write(one)], out, 'opt_out', seen],
  [
    'an opt-out of all before an opt-in',
    [write(two)],
    [listed('blocked', { channel: '*' })],
    null,
    'not c',
  ],
  ['a doubtful opt-out', before, [listed('doubtful')], null, 'not certain: subscribed at'],
  ['an opt-out of another address', before, [listed('opt_out', { through: 'id' })], null, 'not c'],
  [
    'an opt-out, and a write that opted out',
    [write(noon, { after: 'opt_out' })],
    out,
    'opt_out',
    'opted out at',
  ],
];

describe('the state at a past time', () => {
  test.each(past)('%s', (_, entries, list, state, words) => {
    const evidence = { channels: ['news'], entries, listed: list, asOf, present: undefined };
    const [answer] = answersOf(evidence);
    expect(answer?.state).toBe(state);
    expect(answer?.sentence).toContain(`news: ${words}`.replace('news: (', '('));
    for (const { cause } of list.filter((of) => of.channel !== 'b')) {
      expect(answer?.sentence).toContain(`On the do-not-contact list: ${cause}`);
    }
  });
});
