/**
 * Rehearses one run: the real engine runs on copies of the mirror's files, against an emulator that
 * holds what the platform showed, in virtual time. Its rate limits are those given, else those
 * seen, else assumed ones.
 */
import { assemble } from '../../compose/assemble-mirror.ts';
import { connect } from '../../compose/platform-connection.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { runNow } from '../../app/run/run-command.ts';
import type { Config } from '../../config/config.ts';
import { seeded } from '../../emulator/shared/seeded-random.ts';
import type { RunOptions } from '../../engine/context/mirror-context.ts';
import type { PlannedRecord, PlanView, Summary } from '../../engine/report/run-summary.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { systemClock } from '../../http/system-clock.ts';
import { type Original, type WorkingCopy, sendInProcess } from './observe-original.ts';
import { asRead, fillEmulator, type PlatformState, stateOf } from './platform-view.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { parseLimit, type Route, routes } from '../../emulator/limits/route-limits.ts';
import type { UsedLimit } from '../../views/run/rehearsal.ts';
import type { StatedLimit } from '../../domain/route-limit.ts';

/** The limits of the platform where enrolments and deletes are the slowest; others: 60 a minute. */
const assumed: Partial<Record<Route, number>> = { 'contacts.enrol': 30, 'contacts.delete': 30 };
const minuteMs = 60_000;

/** Returns the limit of every route. Throws Invalid if a given limit cannot be read. */
function limitsFor(
  given: readonly string[],
  seen: Readonly<Record<string, StatedLimit | undefined>>,
): UsedLimit[] {
  const stated = new Map(given.map(parseLimit));
  return routes.map((route): UsedLimit => {
    const own = stated.get(route) ?? stated.get('*');
    if (own) {
      const { requests: limit, windowSeconds } = own;
      return { route, limit, windowMs: windowSeconds * 1000, from: 'given' };
    }
    const { limit, windowMs } = seen[route] ?? {};
    if (limit !== undefined && limit > 0 && windowMs !== undefined && windowMs > 0) {
      return { route, limit, windowMs, from: 'seen' };
    }
    return { route, limit: assumed[route] ?? 60, windowMs: minuteMs, from: 'assumed' };
  });
}

/** A platform that is an emulator of the same seed must not draw the ids that are drawn here. */
const idsApart = 0x5eed;

export interface Conditions extends Pick<
  RunOptions,
  'mode' | 'because' | 'only' | 'onlyPeople' | 'progress'
> {
  /** Limits such as `contacts.enrol=30/60`, which override those that were seen. */
  limits: readonly string[];
  faults: readonly string[];
  quirks: readonly string[];
  /** The same seed gives the same faults and the same end. */
  seed: number;
  /** For how many records of each group of the plan the reasons are collected. */
  reasons: number;
}

export interface Rehearsed {
  config: Config;
  summary: Summary;
  groups: PlanView['groups'];
  /** What the first plan makes or withholds, by record: as many of each group as asked for. */
  changes: ReadonlyMap<string, readonly PlannedRecord[]>;
  limits: readonly UsedLimit[];
  missing: { before: number; after: ReturnType<Snapshot['absences']['people']> };
  before: PlatformState;
  after: PlatformState;
}

/** Rehearses a run with a configuration. Throws what a run throws. */
export async function rehearseRun(
  config: Config,
  { original, copy, shell }: { original: Original; copy: WorkingCopy; shell: Shell },
  conditions: Conditions,
): Promise<Rehearsed> {
  const { seed, quirks, faults, reasons, ...options } = conditions;
  const limits = limitsFor(conditions.limits, original.limits);
  const clock = createVirtualClock(systemClock.now(), async (ms) => systemClock.sleep(ms));
  const emulator = fillEmulator(original.view, {
    clock: { now: () => clock.now() + original.aheadMs, monotonic: clock.monotonic },
    random: seeded(seed + idsApart),
    apiKey: original.config.platform.apiKey,
    channels: (config.contacts?.channels ?? []).map(({ id, name }) => ({ id, name: name ?? id })),
    facts: original.facts,
    limits: limits.map(({ route, limit, windowMs }) => `${route}=${limit}/${windowMs / 1000}`),
    quirks,
    faults,
  });
  const before = stateOf(emulator.world);
  // What the run has to say, it says in its summary.
  const { held: _, ...own } = shell;
  const silent: Shell = { ...own, note: () => undefined };
  const { snapshot, memory } = copy;
  const { url, apiKey } = original.config.platform;
  const platform = { ...config.platform, url, apiKey };
  const { view, latencyMs, readings } = original;
  const random = seeded(seed);
  const { mirror, close } = await assemble(
    { ...config, mirror: original.config.mirror, snapshot, memory, platform, redis: undefined },
    silent,
    {
      writes: true,
      standIns: {
        clock,
        random,
        connect(config, shell) {
          const { timeoutMs } = config.platform;
          const send = sendInProcess(emulator.receive, clock, latencyMs, timeoutMs);
          const transport = { send, close: async () => undefined };
          return asRead(connect(config, shell, { transport, clock, random }), view);
        },
        sourceFor: (name, source) => readings.of(name, source, clock.hold),
      },
    },
  );
  const seen: { groups: Rehearsed['groups'] } = { groups: [] };
  const changes = new Map<string, PlannedRecord[]>();
  const missingNow = () => mirror.snapshot.absences.people({ kind: 'contact' });
  try {
    const missingBefore = missingNow().length;
    const summary = await clock.run(
      runNow(mirror, silent, {
        ...options,
        writes: true,
        by: { by: 'program' },
        async shows(plan, round) {
          if (round > 1) return;
          seen.groups = plan.groups;
          for (const group of plan.groups) {
            for await (const record of plan.records(group, reasons)) {
              const name = recordName(record);
              const known = changes.get(name);
              if (known) known.push(record);
              else changes.set(name, [record]);
            }
          }
        },
      }),
    );
    const missing = { before: missingBefore, after: missingNow() };
    const after = stateOf(emulator.world);
    return { config, summary, ...seen, changes, limits, missing, before, after };
  } finally {
    await close();
  }
}

export function recordName({ kind, key }: { kind: string; key: string }): string {
  return `${kind} ${key}`;
}
