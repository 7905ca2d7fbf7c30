/** One person of whom an earlier run has changed something, and what is recorded then. */
import type { DoneChange } from '../../../src/domain/change.ts';
import { canonicalJson, type RecordedRow } from '../../../src/domain/record.ts';
import type { Membership } from '../../../src/records/contact/observe/contact-state.ts';
import { remembered, shown, wish } from './person-facts.ts';
import { NEWS, NOON } from './record-stage.ts';

export const run = 'r1';
export const says = (newsletter: string, more: object = {}) => wish({ newsletter, ...more });
export const isIn = [shown({ news: 'opt_in' })];
export const isOut = [shown({ news: 'opt_out' })];
export const ours = { is: 'opt_out', by: 'us', acked: NOON } as const;

export function withNews(membership: Membership): RecordedRow {
  const row = remembered({ news: membership.is === 'opt_in' ? 'in' : 'us' });
  const body: unknown = JSON.parse(row.body);
  return { ...row, body: canonicalJson({ ...Object(body), channels: { [NEWS]: membership } }) };
}

export const stated = withNews({ ...ours, cause: 'stated', stated: ['1'], bound: ['1'] });
export const undone = withNews({
  ...ours,
  cause: 'undone',
  bound: ['1'],
  undone: { run, said: 'opt_in' },
});
export const theirs = withNews({ is: 'opt_out', by: 'platform', made: { after: null, by: NOON } });
export const done = (op: DoneChange['op'], more: Partial<DoneChange> = {}): DoneChange => ({
  op,
  part: op === 'delete' ? '' : NEWS,
  target: op === 'create' ? undefined : 'con_1',
  body: '{}',
  before: undefined,
  later: undefined,
  isUndone: false,
  wasThere: false,
  ...more,
});
