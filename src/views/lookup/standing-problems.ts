/** The problems that the last runs recorded, what guards withhold, and who decided about it. */
import {
  type GuardClass,
  guardNames,
  guardClasses,
  timedGuards,
} from '../../domain/guard-classes.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import {
  groupProblems,
  type ProblemGroup,
  sayRejected,
} from '../../engine/report/problem-groups.ts';
import { approvingUndo, rejectedForMs } from '../../engine/report/guard-text.ts';
import { byWords, changeName, instant } from '../../compose/output/format-values.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Config } from '../../config/config.ts';
import { weekMs } from '../../domain/guards/guard-limits.ts';
import { approvalIds } from '../../engine/judge/plan-decisions.ts';
import type { Section, Text } from '../sections.ts';
import { maskedText } from './person-names.ts';
import type { Seen } from './seen-mirror.ts';

/** A problem of one record. The address and the value may be personal data. */
export interface StandingProblem {
  class: ProblemClass;
  kind: RecordTypeName;
  cause: ProblemCause;
  key: Key;
  crmIds: readonly string[];
  /** The channel or the operation; '' for the whole record. */
  part: string;
  place: string | null;
  option: string | null;
  value: string | null;
  reason: string;
  fix: string;
  /** When a run first recorded it, in milliseconds since the epoch. */
  since: number;
}

const kinds: readonly RecordTypeName[] = ['contact', 'template'];
const most = 1_000_000;

/** Returns the groups of all recorded problems; `hasHeld`: also of what guards withhold. */
export function standingGroups(snapshot: Snapshot, hasHeld = true): ProblemGroup[] {
  const { problems, ranges, optOutReports } = snapshot;
  const found = groupProblems();
  for (const kind of kinds) {
    for (const range of ranges.ofProblems(kind)) {
      found.add(kind, problems.counted.known(range));
    }
  }
  found.addRefusedReports(optOutReports.rejected('contact', most));
  // A group for each guard with changes that await approval.
  const plans = hasHeld ? snapshot.holds.current() : [];
  for (const guard of guardNames) {
    const [plan] = plans.toSorted((a, b) => b.held[guard] - a.held[guard]);
    if (!plan || plan.held[guard] === 0) continue;
    const stated = plan.undoes === null ? heldReason(snapshot, guard) : undefined;
    found.addHeld(guard, plan.held[guard], stated ?? awaits(plan));
  }
  return found.groups();
}

/** Returns why a guard withholds changes, as the last run that judged them said. */
export function heldReason(
  { problems }: Snapshot,
  guard: GuardClass,
): { reason: string; fix: string } | undefined {
  const told = kinds.flatMap((kind) => problems.counted.listOf(kind, guard));
  return told.find((one) => one.class === 'held');
}

function awaits({ plan, undoes }: { plan: string; undoes: string | null }) {
  if (undoes !== null) {
    return { reason: '`undo` awaits approval', fix: approvingUndo({ undoes, plan }) };
  }
  return { reason: 'awaits approval', fix: `\`crm-mirror approve ${plan}\`, if it is right` };
}

/** Yields every recorded problem. What is approved waits for a run, and says so. */
export function* standingProblems(
  snapshot: Snapshot,
  inForce: readonly string[],
): Generator<StandingProblem> {
  const { problems, ranges, optOutReports } = snapshot;
  yield* heldChanges(snapshot, inForce);
  for (const kind of kinds) {
    for (const range of ranges.ofProblems(kind)) {
      const rows = problems.counted.list(range).filter((one) => one.class !== 'held');
      for (const row of rows) {
        const crmIds = row.crmId === null ? idsOf(snapshot, kind, row.key) : [row.crmId];
        yield { ...row, kind, crmIds };
      }
    }
    for (const row of optOutReports.rejected(kind, most)) {
      const { email: key, crmId, channel: part, reason, fix, plannedAt: since } = row;
      const about = { class: 'rejected', kind, cause: 'crm-refused', ...nowhere } as const;
      const said = { reason: sayRejected(reason ?? ''), fix: fix ?? '' };
      yield { ...about, key, part, ...said, since, crmIds: crmId === '' ? [] : [crmId] };
    }
  }
}

const nowhere = { place: null, option: null, value: null };

function* heldChanges(snapshot: Snapshot, inForce: readonly string[]): Generator<StandingProblem> {
  const { holds } = snapshot;
  const told = new Set<number>();
  for (const { plan, since, undoes } of holds.current()) {
    for (const { id, kind, key, op, part, verdict, by, reason } of holds.rows(plan, inForce)) {
      if (told.has(id)) continue;
      told.add(id);
      const about = { class: 'held', kind, cause: 'awaiting-approval', ...nowhere } as const;
      const crmIds = idsOf(snapshot, kind, key);
      yield {
        ...about,
        key,
        part: [op, part].join(' ').trim(),
        ...(verdict === 'approved'
          ? {
              reason: `approved${byWords({ by: by ?? '', reason })}, waits for a run`,
              fix: 'the next run makes it',
            }
          : awaits({ plan, undoes })),
        since,
        crmIds,
      };
    }
  }
}

function idsOf({ recorded, duplicates }: Snapshot, kind: RecordTypeName, key: Key): string[] {
  if (kind === 'template') return [];
  return [...new Set([...recorded.originsOf(kind, key), ...duplicates.of(kind, key)])].toSorted();
}

/** What waits of a record, with the decisions about it. */
export type WaitingChanges = ReturnType<Snapshot['holds']['of']>;

/** Returns what waits of a person by guard, and by channel where a guard holds each separately. */
export function heldChangesOf(all: WaitingChanges, guards: Config['guards']) {
  return guardClasses.flatMap(({ id: guard, configKey }) => {
    const { holdForMs } = guards[configKey];
    // Only a class with a holding time holds each channel separately.
    const isTimed = timedGuards.has(guard);
    const rows = all.filter((one) => one.guard === guard);
    return [...Map.groupBy(rows, ({ part }) => (isTimed ? part : null))].map(([channel, held]) => {
      const since = Math.min(...held.map((one) => one.since));
      return {
        guard: configKey,
        /** Null if the guard withholds all changes of the person that it counts. */
        channel,
        since: instant(since),
        /** The time from which a run applies it without approval, if the CRM still states it. */
        until: holdForMs === undefined ? null : instant(since + holdForMs),
        decisions: held.flatMap(({ verdict: is, op, part, decision, by, reason, decidedAt }) =>
          is === null || decision === null || decidedAt === null
            ? []
            : {
                is,
                op,
                channel: part,
                plan: decision,
                by: by ?? '',
                reason,
                at: instant(decidedAt),
                until: instant(decidedAt + (is === 'approved' ? weekMs : rejectedForMs)),
              },
        ),
      };
    });
  });
}

/** Formats these changes, each with the decisions about it. */
export function heldLines(held: readonly ReturnType<typeof heldChangesOf>[number][]): string[] {
  return held.flatMap(({ guard, channel, since, until, decisions }) => {
    const when = ` since ${since}`;
    const ask = decisions.length > 0 ? '' : ': `status` names the plan to approve';
    const line =
      until === null
        ? `guards.${guard}${when}${ask}`
        : `opt_out in ${channel}${when}: runs about everybody apply it once it is approved, and ` +
          `from ${until} on without approval, if the CRM still states it; \`sync --person\` and events at once`;
    const decided = decisions.map(({ is, op, channel: part, plan, until: end, ...who }) => {
      const where = part === '' ? '' : ` in ${part}`;
      const back = is === 'approved' ? '' : `; \`approve ${plan}\` takes it back`;
      const how = `${is}${byWords(who)} at ${who.at}, until ${end}${back}`;
      return `  ${op.replace('_', ' ')}${where} ${how}`;
    });
    return [line, ...decided];
  });
}

const mostListed = 10;
/** How many changes are looked at, to find some that nobody has decided about. */
const mostLooked = 1_000;

/** Lists the people who need somebody: refused opt-outs, conflicts, and what awaits a decision. */
export function waitingSections({ snapshot, names, config, now }: Seen): Section[] {
  if (!snapshot) return [{ none: 'There is no snapshot yet.' }];
  const { retryLater, holds } = snapshot;
  const kind = 'contact';
  const person = (key: Key, ...rest: Text[]): Text =>
    [{ record: { kind, key }, name: names({ kind, key }) } as const, ' ', ...rest].flat();
  const problem = ({ key, part, reason }: { key: Key; part: string; reason: string }): Text => {
    const text = maskedText(reason, names);
    return person(key, text.startsWith(`${part}: `) ? text : `${part}: ${text}`);
  };
  const inForce = approvalIds(snapshot, { approvers: config.approvers, now });
  const changes = holds
    .newest()
    .flatMap(({ plan }) => holds.rows(plan, inForce, { most: mostLooked }))
    .filter((change) => change.kind === kind);
  const decided = (isApproved: boolean): Text[] =>
    changes
      .filter(({ verdict }) => isApproved === (verdict === 'approved'))
      .slice(0, mostListed)
      .map(({ key, op, part, by, reason: why }) => {
        const who = byWords({ by: by ?? '', reason: why });
        const end = isApproved ? `: approved${who}, waits for a run` : '';
        const where: Text = part === '' ? [] : [': ', { channel: part }];
        return person(key, changeName(op, false), where, end);
      });
  const refused = retryLater.refusedOptOuts(mostListed).map(problem);
  const conflicts = retryLater.conflicts(kind, mostListed).map(problem);
  const waiting = decided(false);
  const failed = 'Opt-outs that could not be applied';
  const lists: [title: string, people: Text[], page: string, text: string][] = [
    [failed, refused, 'problems?class=rejected', 'All that was refused'],
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
