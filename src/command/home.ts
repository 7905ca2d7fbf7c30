/**
 * Where a worker keeps one mirror: its snapshot, ledger and lease. What it cannot begin with ends
 * the worker; what goes wrong later ends a run, is said, and the next tick tries again.
 *
 *   the lease is another's     stands by: said once, taken soon after it is free
 *   so is the home             the same; one that was lost to another is left
 *   paused                     said once, and nothing is run
 *   the input cannot be used   said with every run
 *   a run failed               its summary says why; opened anew, the configuration read again
 *   a bug, or damage           said; everything is closed, and opened anew by the next tick
 *
 * Runs about everybody are one after the other; a record that the CRM says has changed, a command
 * about one person and the sentinel stand beside them.
 */
import pLimit from 'p-limit';
import type { Config } from '../config/config.ts';
import { Busy, Interrupted, isExpected, Unavailable } from '../model/errors.ts';
import type { RouteLimit } from '../model/limit.ts';
import type { Summary } from '../plan/summary.ts';
import type { Tick } from '../queue/run-queue.ts';
import { systemClock } from '../http/time.ts';
import { watch } from '../sync/sentinel.ts';
import { assemble, type Assembled } from './assemble.ts';
import { complaintsOf } from './complaints.ts';
import { sayForecast } from './foreseen.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { createLog } from './log.ts';
import { createNotifier, type Notifier } from './notifier.ts';
import { runNow } from './pass.ts';
import { refusePaused } from './paused.ts';
import type { Residence } from './residence.ts';
import { copiedAt } from './restored.ts';
import type { Shell } from './shell.ts';

type RunTick = Exclude<Tick, 'sentinel'>;

/** What became of an event. */
type Done = 'done' | 'elsewhere' | 'again';

export interface Home {
  /** Stands by until the mirror is this worker's, or it is to stop. Throws as assemble does. */
  taken(): Promise<void>;
  /** Asks now and then whether it still is; where it is not, leaves it, and stands by again. */
  stay(): Promise<void>;
  /** Never throws; `elsewhere`: the mirror is another's by now. */
  run(tick: Tick): Promise<'over' | 'elsewhere'>;
  /** Brings in line whoever stands under this id of the source. Never throws. */
  record(id: string): Promise<Done>;
  /**
   * Beside whatever runs, or when nothing else does. `stop` is aborted where the mirror is lost as
   * well. Throws Busy where it is another's.
   */
  hold<T>(
    how: 'beside' | 'alone',
    work: (held: Assembled, stop: AbortSignal) => Promise<T>,
  ): Promise<T>;
  /** By route, as the platform's answers tell. */
  limits(): Record<string, RouteLimit>;
  close(): Promise<void>;
}

export interface HomeOptions {
  config: Config;
  shell: Shell;
  residence: Residence;
  /** Told of every run, and of what events brought about. */
  ended(summary: Summary): void;
  /** Reads the configuration again: after a failure the key may be another one. */
  load(): Config;
}

/** A dead holder's lease ends at once; this is how soon it is asked for again. */
const standByMs = 2_000;
const stayMs = 5_000;

interface Opened extends Assembled {
  lanes: Lanes;
}

interface State extends HomeOptions {
  opened: Opened | undefined;
  /** While it is asked whose the mirror is: until then nothing is done with it. */
  coming: Promise<Opened> | undefined;
  /** Aborted where the mirror is lost to another worker. */
  left: AbortController;
  complain: ReturnType<typeof complaintsOf>;
  log: ReturnType<typeof createLog>;
  alone: ReturnType<typeof pLimit>;
  notifier: Notifier | undefined;
}

export function createHome(options: HomeOptions): Home {
  const { config, shell } = options;
  const log = createLog(shell, config.mirror);
  const state: State = {
    ...options,
    opened: undefined,
    coming: undefined,
    left: new AbortController(),
    complain: complaintsOf(config.mirror, shell),
    log,
    alone: pLimit(1),
    notifier: createNotifier(config, { shell, log, clock: systemClock, random: Math.random }),
  };
  return {
    taken: async () => taken(state),
    stay: async () => stay(state),
    run: async (tick) =>
      tick === 'sentinel' ? look(state) : state.alone(() => runTick(state, tick)),
    record: async (id) => record(state, id),
    hold: async (how, work) => hold(state, how, work),
    limits: () => state.opened?.mirror.limits() ?? {},
    close: async () => {
      await state.notifier?.close();
      await close(state);
    },
  };
}

async function close(state: State, failure?: unknown): Promise<void> {
  await state.coming?.catch(() => undefined);
  const { opened } = state;
  state.opened = undefined;
  await opened?.lanes.close();
  await opened?.close(failure);
}

/** Throws Busy where the mirror is another's, Unavailable while Redis cannot say whose it is. */
async function come(state: State): Promise<Opened> {
  if (state.opened) return state.opened;
  state.coming ??= claim(state).finally(() => (state.coming = undefined));
  return state.coming;
}

async function claim(state: State): Promise<Opened> {
  const opened = assemble(state.config, state.shell, { writes: true });
  try {
    await state.residence.claim(opened.mirror.snapshot);
    return (state.opened = { ...opened, lanes: createLanes(opened) });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** With the configuration as it is now. */
async function comeAgain(state: State): Promise<void> {
  try {
    await close(state);
    state.config = state.load();
    await come(state);
  } catch (error) {
    state.complain.of(error);
  }
}

async function taken(state: State): Promise<void> {
  const { shell, complain } = state;
  while (!shell.stop.aborted) {
    try {
      await come(state);
      return;
    } catch (error) {
      if (!(error instanceof Busy) && !(error instanceof Unavailable)) throw error;
      complain.of(error);
      await systemClock.sleep(standByMs, shell.stop).catch(() => undefined);
    }
  }
}

async function stay(state: State): Promise<void> {
  const { shell, residence, complain, alone } = state;
  while (!shell.stop.aborted) {
    await systemClock.sleep(stayMs, shell.stop).catch(() => undefined);
    const { opened } = state;
    if (!opened || shell.stop.aborted || (await residence.keep(opened.mirror.snapshot))) continue;
    complain.of(new Busy('another worker has become the home of this mirror → this one leaves it'));
    state.left.abort(new Interrupted('SIGTERM'));
    await alone(() => close(state));
    state.left = new AbortController();
    await taken(state);
  }
}

/** As the worker's, but that it stops too where the mirror is lost to another. */
function shellOf({ shell, left }: State): Shell {
  return { ...shell, stop: AbortSignal.any([shell.stop, left.signal]) };
}

async function runTick(state: State, tick: RunTick): Promise<'over' | 'elsewhere'> {
  if (state.shell.stop.aborted) return 'elsewhere';
  try {
    await runOnce(state, tick);
  } catch (error) {
    state.complain.of(error);
    if (error instanceof Busy && !state.opened) return 'elsewhere';
    if (!isExpected(error)) await close(state, error);
    else if (!(error instanceof Busy)) await comeAgain(state);
  }
  state.notifier?.ran();
  return 'over';
}

async function runOnce(state: State, tick: RunTick): Promise<void> {
  const { mirror } = await come(state);
  refusePaused(mirror.snapshot.meta, state.config);
  const { config, shell } = state;
  const options = optionsOf(tick);
  const summary = await runNow(mirror, shellOf(state), {
    ...options,
    foresees: (forecast) =>
      sayForecast(forecast, shell, { config, mode: options.mode, now: mirror.clock.now() }),
  });
  state.log.ended(summary, 'run');
  state.ended(summary);
  state.complain.no();
  if (summary.status === 'failed') await comeAgain(state);
  // What was noticed when it was opened holds until a run has seen everything.
  else if (state.opened && summary.mode === 'full' && summary.only === null) {
    state.opened = { ...state.opened, mirror: { ...mirror, notes: [] } };
  }
}

/** What goes wrong is no matter of a run that is under way; only else all is opened anew. */
async function look(state: State): Promise<'over' | 'elsewhere'> {
  const { shell, complain, alone } = state;
  if (shell.stop.aborted) return 'elsewhere';
  try {
    await lookOnce(state);
  } catch (error) {
    if (error instanceof Interrupted) return 'over';
    complain.of(error);
    if (error instanceof Busy) return state.opened ? 'over' : 'elsewhere';
    if (alone.activeCount === 0) await alone(() => comeAgain(state));
  }
  return 'over';
}

async function lookOnce(state: State): Promise<void> {
  const { mirror, lanes } = await come(state);
  const { meta } = mirror.snapshot;
  refusePaused(meta, state.config);
  const { stop, abort } = shellOf(state);
  const restored = copiedAt(meta) !== undefined;
  state.log.saw(await lanes.run((own) => watch(own, { stop, abort, restored })));
  state.complain.no();
}

async function record(state: State, id: string): Promise<Done> {
  const { shell, config, complain, log } = state;
  if (shell.stop.aborted || state.coming) return 'elsewhere';
  try {
    const opened = await come(state);
    refusePaused(opened.mirror.snapshot.meta, config);
    const options = { ...quietly, mode: { record: id }, only: 'contacts' } as const;
    const inner = shellOf(state);
    const summary = await opened.lanes.run((mirror) => runNow(mirror, inner, options));
    if (isWorthTelling(summary)) {
      log.ended(summary, 'event');
      state.ended(summary);
    }
    return isOver(summary) ? 'done' : 'again';
  } catch (error) {
    complain.of(error);
    return state.opened ? 'again' : 'elsewhere';
  }
}

async function hold<T>(
  state: State,
  how: 'beside' | 'alone',
  work: (held: Assembled, stop: AbortSignal) => Promise<T>,
): Promise<T> {
  if (how === 'alone') {
    return state.alone(async () => {
      const held = { ...(await come(state)), close: async () => undefined };
      return work(held, shellOf(state).stop);
    });
  }
  const { lanes } = await come(state);
  return lanes.beside((held) => work(held, shellOf(state).stop));
}

const quietly = { writes: true, progress: () => undefined };

function optionsOf(tick: RunTick) {
  return {
    ...quietly,
    mode: tick === 'fast' ? 'fast' : 'full',
    only: tick === 'templates' ? 'templates' : undefined,
  } as const;
}

/** Nobody wants a line for each event that changed nothing. */
function isWorthTelling({ status, contacts }: Summary): boolean {
  return status !== 'done' || Object.values(contacts.applied).some((n) => n > 0);
}

/** An opt-in that waits for a quarantine to end is for the next run about everybody. */
function isOver({ status, reasons }: Summary): boolean {
  if (status === 'interrupted') return false;
  return status !== 'failed' || reasons.every((reason) => reason.startsWith('quarantined'));
}
