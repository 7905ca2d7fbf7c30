/** Tells what awaits a decision about one person, what is approved and what is rejected. */
import { guardRows, type GuardClass } from '../../../domain/guard-classes.ts';
import type { Key } from '../../../domain/record.ts';
import { rejectedForMs } from '../../../engine/report/guard-text.ts';
import { weekMs } from '../../../engine/report/guard-rules.ts';
import { approvalFinder } from '../../../views/lookup/standing-problems.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import { instant } from '../../../compose/output/format-values.ts';
import type { Seen } from '../../../views/lookup/seen-mirror.ts';
import type { RecordDocument } from '../../../views/state/record-document.ts';
import type { Snapshot } from '../../../store/snapshot.ts';
import type { RecordDecision } from '../../../store/guards/plan-approvals.ts';

/** A change that does not pass by itself. */
export interface HeldOutlook {
  /** The guard, as the configuration names it. */
  guard: string;
  /** The channel; '' if the change concerns the whole person. */
  channel: string;
  is: 'waiting' | 'approved' | 'rejected';
  /** What it is and why: opt out, because the person is missing from the CRM. */
  what: string;
  /** Who decided, and why; null while nobody has. */
  by: string | null;
  reason: string | null;
  /** When a rejection ends, or when an opt-out needs no approval any more; null if never. */
  until: string | null;
}

const kind = 'contact';

/** Returns these changes, with the decisions in force. `whyGone`: why the person is not wanted. */
export function heldOf(
  snapshot: Snapshot,
  { config, now }: Pick<Seen, 'config' | 'now'>,
  { key, document, whyGone }: { key: Key; document: RecordDocument; whyGone: string },
): HeldOutlook[] {
  const { awaitingApproval } = snapshot;
  const approvalOf = approvalFinder(snapshot, { approvers: config.approvers, now });
  const decisions = awaitingApproval.decisionsOn(kind, key, now - weekMs);
  const told = ({ guard, op, part }: Pick<RecordDecision, 'guard' | 'op' | 'part'>): string =>
    `${changeName(op, false)}${part === '' ? ' the person' : ''}, because ${
      guard === 'delete' ? whyGone : 'the CRM says so'
    }`;
  const waiting = awaitingApproval.waitingOf(kind, key).map((one): HeldOutlook => {
    const approval = approvalOf({ kind, key, ...one });
    return {
      guard: guardRows[one.guard].configKey,
      channel: one.part,
      is: approval ? 'approved' : 'waiting',
      what: told(one),
      by: approval?.by ?? null,
      reason: approval?.reason ?? null,
      until: approval ? null : endOf(document, one),
    };
  });
  const rejected = decisions
    .filter(({ is }) => is === 'rejected')
    .map((one): HeldOutlook => {
      const { part: channel, by, reason } = one;
      const until = instant(one.at + rejectedForMs);
      const guard = guardRows[one.guard].configKey;
      return { guard, channel, is: 'rejected', what: told(one), by, reason, until };
    });
  return [...waiting, ...rejected];
}

/** Returns the time from which a stated opt-out needs no approval any more. */
function endOf(
  { awaitingApproval }: RecordDocument,
  { guard, part }: { guard: GuardClass; part: string },
): string | null {
  const { configKey } = guardRows[guard];
  const found = awaitingApproval.find(
    (one) => one.guard === configKey && (one.channel === null || one.channel === part),
  );
  return found?.until ?? null;
}
