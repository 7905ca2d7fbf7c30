/**
 * Summarizes a plan, and forecasts its duration from the platform's rate limits, which the snapshot
 * stores.
 */
import { z } from 'zod';
import { ops } from '../../domain/change.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { forecast, type Forecast, type Needs } from '../report/duration-forecast.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import { type Plan, planning } from '../report/run-summary.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Mirror } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';

const name = 'limits';

const stored = z.record(
  z.string(),
  z.object({
    limit: z.number(),
    windowMs: z.number(),
    others: z.number(),
    /** Milliseconds since the epoch. */
    at: z.number(),
  }),
);
export type SeenLimits = z.infer<typeof stored>;

/** Returns the limits by route, as a run last observed them. */
export function seenLimits(meta: Meta): SeenLimits {
  return metaValue(meta, name, stored) ?? {};
}

/** Stores the limits that a run has observed. Must be called within a transaction. */
export function storeLimits(meta: Meta, seen: Record<string, RouteLimit>, at: number): void {
  const kept = seenLimits(meta);
  for (const [route, { limit, windowMs, others }] of Object.entries(seen)) {
    if (limit === undefined || windowMs === undefined) continue;
    kept[route] = { limit, windowMs, others, at };
  }
  meta.set(name, JSON.stringify(kept));
}

/** Summarizes the staged changes in parts, because there may be many. */
export async function readPlan({
  snapshot: { staging },
  clock,
}: Pick<RunContext, 'snapshot' | 'clock'>): Promise<Plan> {
  const plan = planning();
  for (const chunk of staging.chunks()) {
    plan.add(staging.plannedIn(chunk));
    await clock.sleep(0);
  }
  return plan.done();
}

/** The changes to forecast, and the platform's limits as the mirror knows them. */
interface Forecasting {
  types: readonly RecordType[];
  changes: Plan['changes'];
  mirror: Pick<Mirror, 'limits' | 'reserve'>;
}

/**
 * Counts the changes of a plan that the run sends, after the guards: without those that await
 * approval, were rejected, or wait for a later run.
 */
export function changesToSend({ snapshot }: RunContext, plan: Plan): Plan['changes'] {
  const { awaitingApproval, guarded } = snapshot;
  const left = (kind: RecordTypeName) => [
    ...guarded.withheldOps(kind),
    ...awaitingApproval.refusedOps(kind),
    ...guarded.deferred.ops(kind),
  ];
  const toSend = (kind: RecordTypeName) => {
    const counts = { ...plan.changes[kind] };
    for (const { op, n } of left(kind)) counts[op] = Math.max(0, (counts[op] ?? 0) - n);
    return counts;
  };
  return { contact: toSend('contact'), template: toSend('template') };
}

/** Forecasts how long changes take, from the platform's known rate limits. */
export function forecastRun(run: RunContext, { types, changes, mirror }: Forecasting): Forecast {
  const needs: Needs = {};
  const need = (route: string, n: number): void => void (needs[route] = (needs[route] ?? 0) + n);
  for (const type of types) {
    for (const op of ops) {
      const n = changes[type.name][op] ?? 0;
      need(type.route(op), n);
      // A record that was not listed is looked up before it is created.
      if (op === 'delete' || (op === 'create' && run.mode !== 'full')) need(type.lookRoute(op), n);
    }
  }
  const remembered = Object.entries(seenLimits(run.snapshot.meta)).map(
    ([route, one]): [string, RouteLimit] => [route, { ...one, left: undefined }],
  );
  const now = Object.entries(mirror.limits()).filter(([, { limit }]) => limit !== undefined);
  return forecast(needs, {
    limits: Object.fromEntries([...remembered, ...now]),
    reserve: mirror.reserve,
    readMs: run.clock.now() - run.startedAt,
  });
}
