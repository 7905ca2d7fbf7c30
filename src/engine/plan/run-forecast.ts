/**
 * Summarizes a plan, and forecasts its duration from the platform's rate limits, which the snapshot
 * stores.
 */
import { ops } from '../../domain/change.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { forecast, type Forecast, forecastAgain, type Needs } from '../report/duration-forecast.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { type Plan, planning } from '../report/run-summary.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { routesOf } from '../context/circuit-breaker.ts';
import type { Mirror } from '../context/mirror-context.ts';
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
  const plan = planning();
  for await (const chunk of inTurns(run, staging.chunks())) plan.add(staging.plannedIn(chunk));
  return plan.done();
}

interface Forecasting {
  kinds: readonly RecordTypeName[];
  plan: { changes: Plan['changes'] };
  mirror: Pick<Mirror, 'limits' | 'reserve'>;
}

/** Forecasts the whole plan, before the guards judge it. */
export function forecastRun(run: RunContext, { kinds, plan, mirror }: Forecasting): Forecast {
  const remembered = Object.entries(seenLimits(run.snapshot.meta)).map(
    ([route, one]): [string, RouteLimit] => [route, { ...one, left: undefined }],
  );
  const now = Object.entries(mirror.limits()).filter(([, { limit }]) => limit !== undefined);
  return forecast(needsOf(run, kinds, plan.changes), {
    limits: Object.fromEntries([...remembered, ...now]),
    reserve: mirror.reserve,
    readMs: run.clock.now() - run.startedAt,
  });
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

/** Forecasts again, after the guards: only the changes that they let pass. */
export function forecastPassed(
  run: RunContext,
  whole: Forecast,
  { kinds, plan, mirror }: Forecasting,
): Forecast {
  const seen = { limits: mirror.limits(), reserve: mirror.reserve };
  const needs = needsOf(run, kinds, plan.changes);
  const routes = whole.routes.map((one) => ({ ...one, requests: needs[one.route] ?? 0 }));
  return forecastAgain({ ...whole, routes }, seen);
}
