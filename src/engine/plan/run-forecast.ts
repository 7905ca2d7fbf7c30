/**
 * Sums up a plan, and forecasts how long it takes by the platform's limits, which the snapshot
 * remembers.
 */
import { z } from 'zod';
import { ops } from '../../domain/change.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { forecast, type Forecast, type Needs } from '../report/duration-forecast.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import { type Plan, planning } from '../report/run-summary.ts';
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

/** Returns the limits by route, as a run saw them last. */
export function seenLimits(meta: Meta): SeenLimits {
  return metaValue(meta, name, stored) ?? {};
}

/** Keeps the limits that a run has seen. Within a transaction. */
export function storeLimits(meta: Meta, seen: Record<string, RouteLimit>, at: number): void {
  const kept = seenLimits(meta);
  for (const [route, { limit, windowMs, others }] of Object.entries(seen)) {
    if (limit === undefined || windowMs === undefined) continue;
    kept[route] = { limit, windowMs, others, at };
  }
  meta.set(name, JSON.stringify(kept));
}

/** Sums up the changes that are staged, part by part, since they may be many. */
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

/** The plan to forecast, and the platform's limits as the mirror knows them. */
interface Forecasting {
  types: readonly RecordType[];
  plan: Plan;
  mirror: Pick<Mirror, 'limits' | 'reserve'>;
}

/** Returns how long a plan takes by the platform's limits, as far as they are known. */
export function forecastRun(run: RunContext, { types, plan, mirror }: Forecasting): Forecast {
  const needs: Needs = {};
  const need = (route: string, n: number): void => void (needs[route] = (needs[route] ?? 0) + n);
  for (const type of types) {
    for (const op of ops) {
      const n = plan.changes[type.name][op] ?? 0;
      need(type.route(op), n);
      // A record that was not listed is searched for before it is created.
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
