/**
 * Says how long a run takes if that may surprise, measures its progress, and shows it as a line. A
 * run that writes also stores it for `status`, without any person's name; the entry of a killed
 * process does not count, because another fencing token has the lease.
 */
import {
  changesOf,
  type Forecast,
  forecastAgain,
  leastMs,
  noTime,
  renderForecast,
  type Rest,
  restOf,
} from '../engine/report/duration-forecast.ts';
import { Interrupted, renderProblem } from '../domain/errors.ts';
import type { Config } from '../config/config.ts';
import { intervalOf } from '../config/schema/cron-pattern.ts';
import { pausedOf } from './mirror-files.ts';
import type { Mirror, Progress } from '../engine/context/mirror-context.ts';
import { counted, withCommas } from '../domain/values/counted.ts';
import { lasting, timeOfDay } from './output/format-values.ts';
import type { Shell } from './process-shell.ts';
import { z } from 'zod';
import type { Snapshot } from '../store/snapshot.ts';
import type { Clock } from '../domain/clock.ts';
import type { RouteLimit } from '../domain/route-limit.ts';

/** The shortest time over which a rate is meaningful. */
const leastRateMs = 500;
/** Work begins at another pace: this part tells the end, or a smaller one after a while. */
const surePart = 0.25;
const leastPart = 0.02;
const leastPaceMs = 20_000;
/** After this many windows, the measured rate gives a better estimate than the limits. */
const enoughWindows = 5;

/** The progress of a run at one moment; null stands for what is not known, or not yet. */
const moment = z.object({
  phase: z.enum(['asking', 'reading', 'listing', 'deciding', 'applying']),
  kind: z.string(),
  done: z.number(),
  total: z.number().nullable(),
  /** The share that is done, from 0 to 1. */
  share: z.number().nullable(),
  perSecond: z.number().nullable(),
  leftMs: z.number().nullable(),
  /** How long until the rate limits let more of it be sent. */
  waitMs: z.number().nullable(),
  /** The rate limit of the route that takes longest. */
  limit: z.object({ route: z.string(), limit: z.number(), windowMs: z.number() }).nullable(),
});
type Moment = z.infer<typeof moment>;

export interface Measured extends Moment {
  quietMs: number;
}

/** The latest progress of a record type, in monotonic milliseconds. */
interface News extends Progress {
  sinceMs: number;
  atMs: number;
}

/** The parts of a mirror by which the rest of a run is estimated. */
export interface Pace {
  clock: Clock;
  limits(): Record<string, RouteLimit>;
  reserve: number;
}

/**
 * The rest is estimated from the rate limits, and from the rate once enough was done. `before`: the
 * changes by record type that were made before the run that is continued stopped.
 */
export function createMeter({ clock, limits, reserve }: Pace, before: Applied = new Map()) {
  /** The latest progress by record type, newest last. */
  const news = new Map<string, News>();
  /** When each stage of a record type began; the rate is measured from then. */
  const began = new Map<string, number>();
  let forecast: Forecast | undefined;

  const hear = (progress: Progress): void => {
    const nowMs = clock.monotonic();
    const stage = progress.stage + progress.kind;
    const sinceMs = began.get(stage) ?? nowMs;
    began.set(stage, sinceMs);
    news.delete(progress.kind);
    news.set(progress.kind, { ...progress, sinceMs, atMs: nowMs });
  };
  return {
    hear,
    foresee(told: Forecast): void {
      forecast = told;
      news.clear();
      for (const [kind, of] of changesOf(told)) hear({ stage: 'applying', kind, done: 0, of });
    },
    /** Returns the current progress; undefined before the first news. */
    now(): Measured | undefined {
      const all = [...news.values()];
      const one = all.findLast(({ done, of = 0 }) => done < of) ?? all.at(-1);
      if (!one) return undefined;
      const seen = { limits: limits(), reserve };
      const known = one.stage === 'applying' ? forecast : undefined;
      const rest = known ? restOf(known, one, seen) : noTime;
      const { routes } = known ? forecastAgain(known, seen) : { routes: [] };
      const slowest = routes.find(({ route }) => route.startsWith(`${one.kind}s.`));
      const { route = '', limit = null, windowMs = null } = slowest ?? {};
      const isKnown = limit !== null && windowMs !== null;
      const waits = Object.entries(seen.limits).map(([of, { waitMs = 0 }]) =>
        of.startsWith(`${one.kind}s.`) ? waitMs : 0,
      );
      const { stage: phase, kind, of, sinceMs, atMs } = one;
      const past = known ? (before.get(kind) ?? 0) : 0;
      const done = one.done + past;
      const total = of === undefined ? null : of + past;
      const nowMs = clock.monotonic();
      const elapsedMs = nowMs - sinceMs;
      const isMeasured = one.done > 0 && elapsedMs >= leastRateMs;
      const perSecond = isMeasured ? (one.done / elapsedMs) * 1000 : null;
      // The burst of the first window is no rate.
      const most = isEarly(rest, elapsedMs) ? ((of ?? 0) - one.done) / (rest.ms / 1000) : Infinity;
      return {
        phase,
        kind,
        done,
        total,
        share: one.share ?? (total === null || total === 0 ? null : done / total),
        perSecond: perSecond && Math.min(perSecond, most),
        leftMs: estimateLeft(one, nowMs, rest),
        waitMs: Math.max(0, ...waits) || null,
        quietMs: nowMs - atMs,
        limit: isKnown ? { route, limit, windowMs } : null,
      };
    },
  };
}

/** The limits give a lower bound. While a window is exhausted, the measured rate is meaningless. */
function estimateLeft({ done, of, share, sinceMs, atMs }: News, nowMs: number, rest: Rest) {
  const elapsedMs = nowMs - sinceMs;
  const part = share ?? (of === undefined ? undefined : done / of);
  if (part === undefined || part >= 1) return null;
  const byLimits = rest.ms > 0 ? rest.ms - (nowMs - atMs) : 0;
  const isPace = part >= surePart || (part >= leastPart && elapsedMs >= leastPaceMs);
  const byRate = isPace && elapsedMs >= leastRateMs ? ((1 - part) * elapsedMs) / part : 0;
  const ms = byLimits > 0 && isEarly(rest, elapsedMs) ? byLimits : Math.max(byLimits, byRate);
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

/** Returns whether the limits say more of a run than what it has done up to now. */
function isEarly({ ms, windowMs }: Rest, elapsedMs: number): boolean {
  return ms > 0 && elapsedMs < enoughWindows * windowMs;
}

/** Waiting times below this are not mentioned. */
const longQuietMs = 2000;
/** A rest from this on also has the time of day when it is done. */
const longRestMs = 600_000;

/**
 * Such as "reading the CRM: 120,000 rows (48 %), 12,000/s, 11 s left", and shorter forms for narrow
 * terminals. `now` is in milliseconds since the epoch, and `clock` writes such a time.
 */
export function progressForms(
  measured: Measured,
  now: number,
  clock = timeOfDay,
): [string, ...string[]] {
  const { phase, kind, perSecond, leftMs, quietMs, waitMs } = measured;
  const reading = kind === 'contact' ? 'reading the CRM' : `reading the ${kind}s`;
  const phases: Readonly<Record<string, string>> = { reading, listing: 'listing the platform' };
  const isAsking = phase === 'asking';
  const count = isAsking
    ? 'asking the platform'
    : `${phases[phase] ?? phase}: ${countWords(measured)}`;
  const inSecond = (n: number): string => (n < 10 ? n.toFixed(1) : withCommas(Math.round(n)));
  const rate = perSecond === null ? [] : [`${inSecond(perSecond)}/s`];
  const isQuiet = quietMs >= longQuietMs;
  // What should be over, and is waited for, takes nobody knows how long.
  const isKnown = leftMs !== null && leftMs >= (isQuiet ? longQuietMs : 1);
  const left = isKnown ? [`${lasting(leftMs)} left`] : [];
  const end = isKnown && leftMs >= longRestMs ? [`done at about ${clock(now + leftMs)}`] : [];
  const whoms: Readonly<Record<string, string>> = { reading: ' for the CRM', deciding: '' };
  const whom = whoms[phase] ?? ' for the platform';
  const quietFor = lasting(Math.floor(quietMs / 1000) * 1000);
  const waits =
    waitMs === null || phase === 'reading'
      ? `has waited ${quietFor}${whom}`
      : `the rate limit is used up, sends again in ${lasting(waitMs)}`;
  const quiet = isQuiet ? [waits] : [];
  return [
    [count, ...rate, ...left, ...end, ...quiet].join(', '),
    [count, ...left, ...end].join(', '),
    [count, ...left].join(', '),
    isAsking
      ? phase
      : [`${phase}: ${shareWords(measured) || countWords(measured)}`, ...left].join(', '),
  ];
}

/** Returns the steps of a run, such as: read ✓ · list 48 % · apply */
export function stepWords(at: Pick<RunInProgress, 'mode' | 'phase' | 'share'>): string {
  const { mode, phase, share } = at;
  const steps = [['reading', 'read'], ...(mode === 'full' ? [['listing', 'list']] : [])];
  const all = [...steps, ['applying', 'apply']];
  const begun = phase === 'deciding' ? steps.length : all.findIndex(([is]) => is === phase);
  const words = all.map(([is, step = ''], nth) => {
    if (nth < begun) return `${step} ✓`;
    return is === phase ? `${step} ${shareWords({ share })}`.trim() : step;
  });
  return words.join(' · ');
}

function countWords(measured: Measured): string {
  const { phase, kind, done, total } = measured;
  const noun = phase === 'reading' && kind === 'contact' ? 'row' : kind;
  const what = phase === 'applying' ? `${kind} change` : noun;
  if (total !== null) return `${withCommas(done)} of ${counted(total, what)}`;
  const share = shareWords(measured);
  return `${counted(done, what)}${share === '' ? '' : ` (${share})`}`;
}

function shareWords({ share }: { share: number | null }): string {
  return share === null ? '' : `${Math.floor(share * 100)} %`;
}

const redrawMs = 100;
/** How often to redraw without news, to show that the run is alive. */
const waitingMs = 1000;
/** How often to print a line if none can be redrawn. */
const plainMs = 10_000;
/** How often to store the progress, which takes a transaction. */
const storeMs = 2000;

export interface ProgressOutlets {
  /** Redraws one line on a terminal; undefined if there is none. */
  draw?: Shell['progress'] | undefined;
  say?: ((line: string, measured: Measured) => void) | undefined;
  /** Stores the progress. It is called at intervals, and only if there is news. Never throws. */
  store?: ((measured: Measured) => void) | undefined;
  /** Called at intervals, whether there is news or not. Never throws. */
  beat?: (() => void) | undefined;
}

/** Returns where a command shows the progress of a run: nowhere if it is to be quiet. */
export function outletsOf(shell: Shell): ProgressOutlets {
  if (shell.quiet) return {};
  return shell.interactive ? { draw: shell.progress } : { say: (line) => shell.note(line) };
}

/** Shows the progress of one run until it is closed. */
export function createProgress(
  { draw, say, store, beat }: ProgressOutlets,
  mirror: Pace,
  before?: Applied,
) {
  const { clock } = mirror;
  const meter = createMeter(mirror, before);
  let drawnMs = Number.NEGATIVE_INFINITY;
  let isNews = false;

  const show = (): void => {
    const measured = meter.now();
    if (!measured) return;
    drawnMs = clock.monotonic();
    const [line, ...shorter] = progressForms(measured, clock.now());
    if (draw) draw(line, shorter);
    else say?.(line, measured);
  };
  const keep = (): void => {
    const measured = isNews ? meter.now() : undefined;
    isNews = false;
    if (measured) store?.(measured);
  };
  const closed = new AbortController();
  const repeat = async (act: () => void, everyMs: number): Promise<void> => {
    try {
      for (;;) {
        await clock.sleep(everyMs, closed.signal);
        act();
      }
    } catch {
      // It is closed.
    }
  };
  if (draw ?? say) void repeat(show, draw ? waitingMs : plainMs);
  if (store) void repeat(keep, storeMs);
  if (beat) void repeat(beat, storeMs);
  return {
    progress(progress: Progress): void {
      meter.hear(progress);
      const isDue = clock.monotonic() - drawnMs >= redrawMs || progress.done === progress.of;
      if (draw && isDue) show();
      isNews = true;
    },
    foresees(forecast: Forecast): void {
      meter.foresee(forecast);
      isNews = true;
    },
    close: () => closed.abort(),
  };
}

const name = 'running';

const stored = moment.extend({
  token: z.number(),
  mode: z.enum(['full', 'fast']),
  /** The command that runs, and the id of its process. */
  command: z.string(),
  pid: z.number(),
  /** When the run began, and when this was stored; in milliseconds since the epoch. */
  since: z.number(),
  at: z.number(),
});

type RunInProgress = z.infer<typeof stored>;

const beginning: Moment = {
  phase: 'asking',
  kind: 'contact',
  done: 0,
  total: null,
  share: null,
  perSecond: null,
  leftMs: null,
  waitMs: null,
  limit: null,
};

/** Stores that a run begins. Never throws: without the entry, only `status` knows less. */
function enterRun(
  { snapshot, clock }: Mirror,
  about: { mode: RunInProgress['mode']; command: string },
): { store(now: Moment): void; end(): void } {
  const { meta, transaction } = snapshot;
  const since = clock.now();
  const token = snapshot.generation();
  const attempt = (work: () => void): void => {
    try {
      transaction(work);
    } catch {
      // The run itself notices a snapshot that cannot be written, and reports it.
    }
  };
  const store = (now: Moment): void => {
    const { pid } = process;
    const entry = stored.parse({ ...now, ...about, token, pid, since, at: clock.now() });
    attempt(() => meta.set(name, JSON.stringify(entry)));
  };
  store(beginning);
  return { store, end: () => attempt(() => meta.drop(name)) };
}

/** Undefined if the holder of the lease does no run. An entry of another version counts as none. */
export function runInProgress(
  { meta, generation }: Snapshot,
  leased: boolean,
): RunInProgress | undefined {
  const text = leased ? meta.get(name) : undefined;
  if (text === undefined) return undefined;
  const { data } = stored.safeParse(JSON.parse(text));
  return data?.token === generation() ? data : undefined;
}

/**
 * Returns the hooks of a run, which the caller closes at its end, and its shell: `pause --stop`
 * stops it, too. Only a run about all people is stored for `status`, and stopped by a pause.
 */
export function followRun(
  shell: Shell,
  mirror: Mirror,
  {
    writes,
    isForAll,
    outlets,
    ...about
  }: Foreseen & { writes: boolean; isForAll: boolean; outlets: ProgressOutlets },
) {
  const said = foreseeing(shell, mirror, about);
  const command = shell.argv?.[0] ?? '';
  const entry = writes && isForAll ? enterRun(mirror, { mode: about.mode, command }) : undefined;
  const paused = new AbortController();
  const beat = (): void => {
    if (!pausedOf(mirror.snapshot.meta)?.isStop || paused.signal.aborted) return;
    shell.note(`crm-mirror: ${mirror.name}: a pause stops this run; what it has done is recorded`);
    paused.abort(new Interrupted('SIGTERM'));
  };
  const hooks = { ...outlets, store: entry?.store, beat: entry && beat };
  const line = createProgress(hooks, mirror, entry && appliedBefore(mirror.snapshot, about.mode));
  return {
    shell: { ...shell, stop: AbortSignal.any([shell.stop, paused.signal]) },
    progress(progress: Progress): void {
      said.progress(progress);
      line.progress(progress);
    },
    foresees(forecast: Forecast): void {
      if (writes) line.foresees(forecast);
      said.foresees(forecast);
    },
    close(): void {
      line.close();
      entry?.end();
    },
  };
}

type Applied = ReadonlyMap<string, number>;

/** How many runs that were stopped, one after the other, a run continues at most. */
const mostContinued = 20;

/** Counts the changes that the runs made which did not end, and which the next one continues. */
function appliedBefore({ runs, figures, journal }: Snapshot, mode: string): Applied {
  const done = new Map<string, number>();
  for (const { id, status } of runs.newest(mostContinued, { mode })) {
    if (!/^(running|interrupted)$/.test(status)) break;
    const counts = figures.changesOf(id) ?? [...journal.tally(id)].flat();
    for (const { kind, state, n } of counts)
      if (state === 'acked') done.set(kind, (done.get(kind) ?? 0) + n);
  }
  return done;
}

/** The duration above which a run is announced. */
const longMs = 10 * 60_000;
/** The shortest time between two runs that a schedule can ask for. */
const shortestMs = 1_000;

interface Foreseen {
  config: { mirror: string; schedule?: Config['schedule'] };
  mode: 'full' | 'fast';
  firstLoad?: boolean;
}

/** The notice comes before the run writes, or later if no limit was known at that time. */
export function foreseeing(shell: Shell, mirror: Pace, about: Foreseen) {
  let unknown: Forecast | undefined;
  const say = (forecast: Forecast): void => {
    unknown = isWorthSaying(forecast) ? undefined : forecast;
    sayForecast(forecast, shell, { ...about, now: mirror.clock.now() });
  };
  return {
    foresees: say,
    /** Prints the notice as soon as a response shows the limit that was unknown. */
    progress({ stage }: { stage: Progress['stage'] }) {
      if (!unknown || stage !== 'applying') return;
      const forecast = forecastAgain(unknown, { limits: mirror.limits(), reserve: mirror.reserve });
      if (isWorthSaying(forecast)) say(forecast);
    },
  };
}

/** The limit of the route with the most requests is known, or the run is long in any case. */
function isWorthSaying(forecast: Forecast): boolean {
  const { routes } = forecast;
  const most = Math.max(0, ...routes.map(({ requests }) => requests));
  const isKnown = routes.every(({ requests, ms }) => requests < most || ms !== null);
  return isKnown || leastMs(forecast) >= longMs;
}

/** Says it if the run is long, or does not fit into its schedule. `now`: epoch ms. */
export function sayForecast(
  forecast: Forecast,
  { note }: Shell,
  { config, mode, firstLoad = false, now }: Foreseen & { now: number },
): void {
  const { ms, readMs } = forecast;
  // Known routes count even if the limit of another route is unknown.
  const knownMs = leastMs(forecast);
  const allMs = readMs + knownMs;
  const { patterns, timezone = 'UTC' } = config.schedule ?? {};
  const pattern = allMs < shortestMs ? undefined : patterns?.[mode];
  const everyMs = pattern === undefined ? undefined : intervalOf(pattern, { timezone, now });
  const about = ms === null ? 'at least' : 'about';
  const isTooLong = everyMs !== undefined && allMs > everyMs;
  if (!firstLoad && !isTooLong && knownMs < longMs) return;
  for (const line of renderForecast(forecast, lasting)) note(`crm-mirror: ${line}`);
  if (!isTooLong) return;
  const late = renderProblem({
    reason:
      `this run cannot finish within its schedule: it takes ${about} ${lasting(allMs)}, ` +
      `and a ${mode} run is due every ${lasting(everyMs)}`,
    fix:
      'what is due meanwhile waits for it; schedule fewer, ' +
      'or have the platform raise the limits',
  });
  note(`crm-mirror: ${config.mirror}: ${late}`);
}
