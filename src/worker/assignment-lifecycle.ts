/**
 * Opens and closes a mirror as its assignment comes and goes: claims it, keeps it, gives it up to
 * another worker, and claims it again.
 */
import type pLimit from 'p-limit';
import type { Config } from '../config/config.ts';
import { Busy, Interrupted, Unavailable } from '../domain/errors.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Assembled, Shell } from '../cli/compose/process-shell.ts';
import { assemble } from '../cli/compose/assemble-mirror.ts';
import type { createLog } from '../cli/run/run-log.ts';
import type { Complaints } from './notifications/blocked-notices.ts';
import { createLanes, type Lanes } from './person-runs.ts';
import type { Notifier } from './notifications/webhook-notifier.ts';
import type { MirrorAssignment } from './mirror-assignment.ts';
import { retrySchedules } from '../domain/retry-schedules.ts';

/** The parts and settings with which a worker keeps a mirror. */
export interface HomeOptions {
  config: Config;
  shell: Shell;
  assignment: MirrorAssignment;
  /** Called after every run, and after what events brought about. */
  ended(summary: Summary): void;
  /** Reads the configuration again: after a failure the API key may be another one. */
  load(): Config;
}

/** How often to ask whether the mirror is still this worker's. */
const stayMs = 5_000;

/** A mirror that this worker has open. */
interface Opened extends Assembled {
  lanes: Lanes;
}

/** The state that the files of a mirror's host share. */
export interface State extends HomeOptions {
  /** Undefined: the mirror is not open. */
  opened: Opened | undefined;
  /** Pending while the mirror is claimed: until then nothing is done with it. */
  coming: Promise<Opened> | undefined;
  /** Aborted when the mirror is lost to another worker, then replaced. */
  left: AbortController;
  complain: Complaints;
  log: ReturnType<typeof createLog>;
  alone: ReturnType<typeof pLimit>;
  notifier: Notifier | undefined;
}

/** Closes the mirror, if it is open. `failure`: the error that is the reason. */
export async function close(state: State, failure?: unknown): Promise<void> {
  await state.coming?.catch(() => undefined);
  const { opened } = state;
  state.opened = undefined;
  await opened?.lanes.close();
  await opened?.close(failure);
}

/**
 * Returns the open mirror, and claims it first if it is not. Throws Busy if it is another worker's,
 * Unavailable while Redis cannot tell whose it is, and the errors of `assemble`.
 */
export async function come(state: State): Promise<Opened> {
  if (state.opened) return state.opened;
  state.coming ??= claim(state).finally(() => (state.coming = undefined));
  return state.coming;
}

async function claim(state: State): Promise<Opened> {
  const opened = assemble(state.config, state.shell, { writes: true });
  try {
    await state.assignment.claim(opened.mirror.snapshot);
    return (state.opened = { ...opened, lanes: createLanes(opened) });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Closes the mirror and opens it with the configuration as it is now. Prints a failure. */
export async function comeAgain(state: State): Promise<void> {
  try {
    await close(state);
    state.config = state.load();
    await come(state);
  } catch (error) {
    state.complain.of(error);
  }
}

/**
 * Waits until the mirror is this worker's, or the worker is to stop. Throws the errors of
 * `assemble`.
 */
export async function taken(state: State): Promise<void> {
  const { shell, complain } = state;
  while (!shell.stop.aborted) {
    try {
      await come(state);
      return;
    } catch (error) {
      if (!(error instanceof Busy) && !(error instanceof Unavailable)) throw error;
      complain.of(error);
      await systemClock.sleep(retrySchedules.lease.firstMs, shell.stop).catch(() => undefined);
    }
  }
}

/**
 * Asks every few seconds whether the mirror is still this worker's, until the worker is to stop. If
 * it is not, closes it and waits until it is again.
 */
export async function stay(state: State): Promise<void> {
  const { shell, assignment, complain, alone } = state;
  while (!shell.stop.aborted) {
    await systemClock.sleep(stayMs, shell.stop).catch(() => undefined);
    const { opened } = state;
    if (!opened || shell.stop.aborted) continue;
    const failure = await lostBy(assignment.keep(opened.mirror.snapshot));
    if (failure === undefined) continue;
    complain.of(failure);
    state.left.abort(new Interrupted('SIGTERM'));
    await alone(() => close(state, failure));
    state.left = new AbortController();
    await taken(state);
  }
}

/** Returns why the mirror has to be given up; undefined: it does not. */
async function lostBy(kept: Promise<boolean>): Promise<unknown> {
  const another = 'another worker has become the home of this mirror';
  try {
    return (await kept) ? undefined : new Busy(another, { fix: 'this one leaves it' });
  } catch (error) {
    return error;
  }
}

/** Returns the worker's shell with a `stop` that is also aborted when the mirror is lost. */
export function shellOf({ shell, left }: State): Shell {
  return { ...shell, stop: AbortSignal.any([shell.stop, left.signal]) };
}
