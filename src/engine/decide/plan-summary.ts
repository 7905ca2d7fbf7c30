/**
 * Summarizes a plan, shows it as people read it, and forecasts its duration from the platform's
 * rate limits, which the snapshot stores.
 */
import { type Change, ops } from '../../domain/change.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { forecast, type Forecast, type Needs } from '../report/duration-forecast.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { type Plan, planning, type PlannedRecord, type PlanView } from '../report/run-summary.ts';
import type { ChangeGroup } from '../../store/staging/staging.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { routesOf } from '../context/circuit-breaker.ts';
import type { RunContext } from '../context/run-context.ts';
import { inTurns } from '../context/work-in-parts.ts';

/** The limits by route, and when each was seen, in milliseconds since the epoch. */
export type SeenLimits = Record<
  string,
  { limit: number; windowMs: number; others: number; at: number }
>;
const limits = storedFact<SeenLimits>('limits', 'the known rate limits');

export function seenLimits(meta: Meta): SeenLimits {
  return limits.read(meta) ?? {};
}

/** Stores the limits that a run has observed. Must be called within a transaction. */
export function storeLimits(meta: Meta, seen: Record<string, RouteLimit>, at: number): void {
  const kept = seenLimits(meta);
  for (const [route, { limit, windowMs, others }] of Object.entries(seen)) {
    if (limit === undefined || windowMs === undefined) continue;
    kept[route] = { limit, windowMs, others, at };
  }
  limits.write(meta, kept);
}

/** Summarizes the staged changes in parts, because there may be many. */
export async function readPlan(run: RunContext): Promise<Plan> {
  const { staging } = run.snapshot;
  const plan = planning(run.undo?.run);
  for await (const chunk of inTurns(run, staging.chunks())) plan.add(staging.plannedIn(chunk));
  return plan.done();
}

/** Returns the plan as people read it, with what the guards have judged. */
export async function viewPlan(run: RunContext): Promise<PlanView> {
  const { staging } = run.snapshot;
  const groups = new Map<string, ChangeGroup>();
  for await (const chunk of inTurns(run, staging.chunks())) {
    for (const group of staging.groupsIn(chunk)) {
      const name = `${group.kind} ${group.op} ${group.held}`;
      const { n, own } = groups.get(name) ?? { n: 0, own: 0 };
      groups.set(name, { ...group, n: n + group.n, own: own + group.own });
    }
  }
  return {
    groups: [...groups.values()],
    records: (group, most) => recordsOf(run, group, most),
    cannot: run.undo?.cannot(),
  };
}

async function* recordsOf(
  run: RunContext,
  { kind, op, held }: ChangeGroup,
  most: number,
): AsyncGenerator<PlannedRecord> {
  const { staging } = run.snapshot;
  let last: PlannedRecord | undefined;
  let count = 0;
  // The changes of a record follow each other, possibly across the border of two chunks.
  for await (const chunk of inTurns(run, staging.chunks())) {
    const these = { ...chunk, of: kind, shown: op, held };
    for (const { rule, ...change } of staging.groupedIn(these)) {
      const { key, part } = change;
      if (last?.key === key && !last.parts.includes(part)) last.parts.push(part);
      if (last?.key === key) continue;
      if (last) yield last;
      if (count === most) return;
      count += 1;
      const reason = reasonOf(run, change, rule);
      last = { kind, op, held, key, parts: part === '' ? [] : [part], reason };
    }
  }
  if (last) yield last;
}

/** Returns why a change is planned, in the words of the rule that decided it; '' without one. */
function reasonOf(
  { contacts, templates, undo }: RunContext,
  change: Change,
  rule?: string,
): string {
  if (undo) return `undoes what run ${undo.run} did`;
  const reason =
    change.kind === 'template' ? templates?.reasonFor(change) : contacts?.reasonFor(rule ?? null);
  return reason ?? '';
}

/** Forecasts a plan by the limits that this run has seen, or else by those of earlier runs. */
export function forecastRun(
  run: RunContext,
  {
    kinds,
    changes,
    readMs,
  }: { kinds: readonly RecordTypeName[]; changes: Plan['changes']; readMs: number },
): Forecast {
  const remembered = Object.entries(seenLimits(run.snapshot.meta)).map(
    ([route, one]): [string, RouteLimit] => [route, { ...one, left: undefined }],
  );
  const now = Object.entries(run.limits()).filter(([, { limit }]) => limit !== undefined);
  const limits = Object.fromEntries([...remembered, ...now]);
  return forecast(needsOf(run, kinds, changes), { limits, reserve: run.reserve, readMs });
}

function needsOf(
  { mode }: RunContext,
  kinds: readonly RecordTypeName[],
  changes: Plan['changes'],
): Needs {
  const needs: Needs = {};
  const need = (route: string, n: number): void => void (needs[route] = (needs[route] ?? 0) + n);
  for (const kind of kinds) {
    const { change, look } = routesOf[kind];
    for (const op of ops) {
      const n = changes[kind][op] ?? 0;
      need(change(op), n);
      // A record that was not listed is looked up before it is created.
      if (op === 'delete' || (op === 'create' && mode !== 'full')) need(look(op), n);
    }
  }
  return needs;
}
