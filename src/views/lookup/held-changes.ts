/** Tells what guards withhold, and who decided about it. */
import type { Config } from '../../config/config.ts';
import { guardClasses } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { rejectedForMs } from '../../engine/report/approval-rules.ts';
import { weekMs } from '../../engine/report/guard-rules.ts';
import { approvalsInForce } from '../../engine/guard/signed-approvals.ts';
import type { RecordDecision } from '../../store/guards/plan-approvals.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { instant } from '../../compose/output/format-values.ts';

const kind = 'contact';

/** Returns the changes of a person that await approval because of a guard. `now`: epoch ms. */
export function heldChangesOf(
  snapshot: Snapshot,
  { key, config, now }: { key: Key; config: Config; now: number },
) {
  const { awaitingApproval } = snapshot;
  const { guards, approvers } = config;
  const inForce = approvalsInForce(snapshot, { approvers, now });
  const decisions = awaitingApproval
    .decisionsOn(kind, key, now - weekMs)
    .filter(({ is, plan }) => is === 'rejected' || inForce.some((one) => one.plan === plan));
  return guardClasses.flatMap(({ id: guard, configKey }) => {
    const { holdForMs } = guards[configKey];
    return awaitingApproval.of(guard, key).map(({ part, at }) => ({
      guard: configKey,
      /** Null if the guard withholds all changes of the person that it counts. */
      channel: part === '' ? null : part,
      since: at === 0 ? null : instant(at),
      /** The time from which a run applies it without approval, if the CRM still states it. */
      until: holdForMs === undefined || at === 0 ? null : instant(at + holdForMs),
      /** The approvals and rejections in force. */
      decisions: decisions
        .filter((one) => one.guard === guard && (part === '' || one.part === part))
        .map((one) => ({
          is: one.is,
          op: one.op,
          channel: one.part,
          plan: one.plan,
          by: one.by,
          reason: one.reason,
          at: instant(one.at),
          until: instant(one.at + (one.is === 'approved' ? weekMs : rejectedForMs)),
        })),
    }));
  });
}

/** Formats these changes, each with the decisions about it. */
export function heldLines(held: readonly ReturnType<typeof heldChangesOf>[number][]): string[] {
  return held.flatMap(({ guard, channel, since, until, decisions }) => {
    const when = since === null ? '' : ` since ${since}`;
    const ask = decisions.length > 0 ? '' : ': `status` names the plan to approve';
    const line =
      until === null
        ? `guards.${guard}${when}${ask}`
        : `opt_out in ${channel}${when}: runs about everybody apply it once it is approved, and ` +
          `from ${until} on without approval, if the CRM still states it; \`one\` and events at once`;
    const decided = decisions.map(({ is, op, channel: part, plan, until: end, ...who }) => {
      const where = part === '' ? '' : ` in ${part}`;
      const back = is === 'approved' ? '' : `; \`approve ${plan}\` takes it back`;
      const how = `${is}${byWords(who)} at ${who.at}, until ${end}${back}`;
      return `  ${op.replace('_', ' ')}${where} ${how}`;
    });
    return [line, ...decided];
  });
}

/** Returns the approval in force of a change; undefined if it awaits a decision. */
export type ApprovalOf = (change: {
  kind: RecordTypeName;
  key: Key;
  op: string;
  part: string;
}) => RecordDecision | undefined;

/** Reads which approvals are in force. `now` is in milliseconds since the epoch. */
export function approvalFinder(
  snapshot: Snapshot,
  verified: Parameters<typeof approvalsInForce>[1],
): ApprovalOf {
  const inForce = new Set(approvalsInForce(snapshot, verified).map(({ plan }) => plan));
  if (inForce.size === 0) return () => undefined;
  const after = verified.now - weekMs;
  return ({ kind, key, op, part }) =>
    snapshot.awaitingApproval
      .decisionsOn(kind, key, after)
      .findLast(
        (one) =>
          one.is === 'approved' && inForce.has(one.plan) && one.op === op && one.part === part,
      );
}
