/** Lists the people who need somebody: refused opt-outs, conflicts, and what awaits a decision. */
import type { Key } from '../../domain/record.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { maskedText } from '../lookup/person-names.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { approvalIds } from '../../engine/guard/signed-approvals.ts';
import type { Section, Text } from '../sections.ts';

const kind = 'contact';
const listed = 10;
/** How many changes are looked at, to find some that nobody has decided about. */
const looked = 1_000;

export function waitingSections({ snapshot, names, config, now }: Seen): Section[] {
  if (!snapshot) return [{ none: 'There is no snapshot yet.' }];
  const { retryLater, holds } = snapshot;
  const person = (key: Key, ...rest: Text[]): Text =>
    [{ record: { kind, key }, name: names({ kind, key }) } as const, ' ', ...rest].flat();
  const problem = ({ key, part, reason }: { key: Key; part: string; reason: string }): Text => {
    const text = maskedText(reason, names);
    return person(key, text.startsWith(`${part}: `) ? text : `${part}: ${text}`);
  };
  const inForce = approvalIds(snapshot, { approvers: config.approvers, now });
  const changes = holds
    .current()
    .flatMap(({ plan }) => holds.rows(plan, inForce, { most: looked }))
    .filter((change) => change.kind === kind);
  const decided = (isApproved: boolean): Text[] =>
    changes
      .filter(({ verdict }) => isApproved === (verdict === 'approved'))
      .slice(0, listed)
      .map(({ key, op, part, by, reason: why }) => {
        const end = isApproved
          ? `: approved${byWords({ by: by ?? '', reason: why })}, waits for a run`
          : '';
        const where: Text = part === '' ? [] : [': ', { channel: part }];
        return person(key, changeName(op, false), where, end);
      });
  const refused = retryLater.refusedOptOuts(listed).map(problem);
  const conflicts = retryLater.conflicts(kind, listed).map(problem);
  const waiting = decided(false);
  const lists: [title: string, people: Text[], page: string, text: string][] = [
    [
      'Opt-outs that could not be applied',
      refused,
      'problems?class=rejected',
      'All that was refused',
    ],
    ['Conflicts', conflicts, 'problems?class=conflict', 'All conflicts'],
    ['Awaiting approval', waiting, 'approvals', 'All that awaits approval'],
    ['Approved, waits for a run', decided(true), 'approvals', 'All that is approved'],
  ];
  const calm =
    'Nobody waits for a decision: no conflict, no refused opt-out, and nothing awaits approval.';
  const isCalm = refused.length + conflicts.length + waiting.length === 0;
  return [
    ...lists.map(([title, people, page, text]) => ({
      title,
      lines: people.length === 0 ? [] : [...people, { page, text }],
      isList: true,
    })),
    ...(isCalm ? [{ none: calm }] : []),
  ];
}
