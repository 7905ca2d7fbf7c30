/**
 * Opens and closes a mirror as its assignment changes: claims the mirror, keeps it, releases it to
 * another worker, and claims it again.
 */
import type pLimit from 'p-limit';
import type { Config } from '../config/config.ts';
import type { Attention } from '../cli/status/attention-list.ts';
import type { Clock } from '../domain/clock.ts';
import { Busy, Interrupted, Unavailable } from '../domain/errors.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Assembled, Shell } from '../cli/compose/process-shell.ts';
import { assemble } from '../cli/compose/assemble-mirror.ts';
import type { createLog } from '../cli/run/run-log.ts';
import type { Complaints } from './notifications/blocked-notices.ts';
import { createLanes, type Lanes } from './person-runs.ts';
import type { Notifier } from './notifications/notifier.ts';
import type { MirrorAssignment } from './mirror-assignment.ts';
import type { Turns } from './placement/fleet-member.ts';
import type { NodeHeartbeat } from './queues/node-heartbeat.ts';
import { retrySchedules } from '../domain/retry-schedules.ts';

/** The parts and settings with which a worker serves a mirror. */
export interface HomeOptions {
  config: Config;
  shell: Shell;
  assignment: MirrorAssignment;
  /** Called after every run, and after events have been processed. */
  ended(summary: Summary): void;
  /** Tells when the assignment has to be checked; undefined: every few seconds. */
  node?: NodeHeartbeat | undefined;
  /** Tells when the mirror has to be claimed; undefined: as soon as it can be. */
  turns?: Turns | undefined;
  /** Reads the configuration again, because after a failure the API key may have changed. */
  load(): Config;
  /** The clock of notifications. */
  clock: Clock;
  /** Returns what this process notices of Redis. */
  faults(): readonly Attention[];
}

/** How often to check whether the mirror is still assigned to this worker. */
const stayMs = 5_000;

/** A mirror that this worker has opened. */
interface Opened extends Assembled {
  lanes: Lanes;
}

/** The state shared by the files of a mirror's host. */
export interface State extends HomeOptions {
  /** The open mirror; undefined if it is not open. */
  opened: Opened | undefined;
  /** Pending while the mirror is being claimed. Until then, the mirror is not used. */
  coming: Promise<Opened> | undefined;
  /** Aborted when the mirror is lost to another worker, then replaced. */
  left: AbortController;
  complain: Complaints;
  log: ReturnType<typeof createLog>;
  alone: ReturnType<typeof pLimit>;
  notifier: Notifier | undefined;
  /** Who has the mirror, as far as this worker knows. It stays so while Redis is away. */
  owner: 'this' | 'another' | 'unknown';
}

/** Closes the mirror if it is open. `failure` is the error that caused the closing, if any. */
export async function close(state: State, failure?: unknown): Promise<void> {
  await state.coming?.catch(() => undefined);
  const { opened } = state;
  state.opened = undefined;
  await opened?.lanes.close();
  await opened?.close(failure);
}

/**
 * Returns the open mirror, claiming it first if necessary. Throws Busy if it is assigned to another
 * worker, Unavailable while Redis cannot report the assignment, and the errors of `assemble`.
 */
export async function come(state: State): Promise<Opened> {
  if (state.opened) return state.opened;
  state.coming ??= claim(state).finally(() => (state.coming = undefined));
  return state.coming;
}

async function claim(state: State): Promise<Opened> {
  try {
    const opened = await claimOpened(state);
    state.owner = 'this';
    return opened;
  } catch (error) {
    if (error instanceof Busy) state.owner = 'another';
    throw error;
  }
}

async function claimOpened(state: State): Promise<Opened> {
  const opened = assemble(state.config, state.shell, { writes: true });
  try {
    await state.assignment.claim(opened.mirror.snapshot);
    return (state.opened = { ...opened, lanes: createLanes(opened) });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Closes the mirror and reopens it with the current configuration. Prints any failure. */
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
 * Waits until the mirror is assigned to this worker or the worker is asked to stop. Throws the
 * errors of `assemble`.
 */
export async function taken(state: State): Promise<void> {
  const { shell, complain, turns, config } = state;
  while (!shell.stop.aborted) {
    if (turns) {
      if (turns.isOthers(config.mirror)) state.owner = 'another';
      await turns.turn(config.mirror, shell.stop);
      if (shell.stop.aborted) return;
    }
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
 * Checks every few seconds whether the mirror is still assigned to this worker, until the worker is
 * asked to stop. If it is not, closes it and waits until it is assigned again.
 */
export async function stay(state: State): Promise<void> {
  const { shell, assignment, complain, alone, node, config } = state;
  while (!shell.stop.aborted) {
    if (node) await node.due(config.mirror, shell.stop);
    else await systemClock.sleep(stayMs, shell.stop).catch(() => undefined);
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

/** Returns why the mirror has to be released, or undefined if it can be kept. */
async function lostBy(kept: Promise<boolean>): Promise<unknown> {
  const another = 'another worker has become the home of this mirror';
  try {
    return (await kept) ? undefined : new Busy(another, { fix: 'this one leaves it' });
  } catch (error) {
    return error;
  }
}

/** Returns the worker's shell with a `stop` that is also aborted if the mirror is lost. */
export function shellOf({ shell, left }: State): Shell {
  return { ...shell, stop: AbortSignal.any([shell.stop, left.signal]) };
}
