/** What is remembered of the platform's limits, and how long a plan takes by them. */
import { z } from 'zod';
import { ops } from '../../domain/change.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { forecast, type Forecast, type Needs } from '../report/duration-forecast.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import type { RunState } from '../context/run-state.ts';

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

/** By route, as a run saw them last. */
export function seenLimits(meta: Meta): SeenLimits {
  return metaValue(meta, name, stored) ?? {};
}

/** Keeps what a run has seen of them. Within a transaction. */
export function storeLimits(meta: Meta, seen: Record<string, RouteLimit>, at: number): void {
  const kept = seenLimits(meta);
  for (const [route, { limit, windowMs, others }] of Object.entries(seen)) {
    if (limit === undefined || windowMs === undefined) continue;
    kept[route] = { limit, windowMs, others, at };
  }
  meta.set(name, JSON.stringify(kept));
}

export function forecastRun({ run, parts, plan }: RunState): Forecast {
  const needs: Needs = {};
  const need = (route: string, n: number): void => void (needs[route] = (needs[route] ?? 0) + n);
  for (const { type } of parts) {
    for (const op of ops) {
      const n = plan?.changes[type.name][op] ?? 0;
      need(type.route(op), n);
      // Who was not listed just now is searched for before being created.
      if (op === 'delete' || (op === 'create' && run.mode !== 'full')) need(type.lookRoute(op), n);
    }
  }
  const remembered = Object.entries(seenLimits(run.snapshot.meta)).map(
    ([route, one]): [string, RouteLimit] => [route, { ...one, left: undefined }],
  );
  const now = Object.entries(run.limits()).filter(([, { limit }]) => limit !== undefined);
  return forecast(needs, {
    limits: Object.fromEntries([...remembered, ...now]),
    reserve: run.reserve,
    readMs: run.clock.now() - run.startedAt,
  });
}
