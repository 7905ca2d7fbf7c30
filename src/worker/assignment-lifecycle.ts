/**
 * Whether the mirror is this worker's, and what it has open of it then: come to, kept, left to
 * another worker, and come to again.
 */
import type pLimit from 'p-limit';
import type { Config } from '../config/config.ts';
import { Busy, Interrupted, Unavailable } from '../domain/errors.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Assembled } from '../cli/compose/assembled-mirror.ts';
import { assemble } from '../cli/compose/assemble-mirror.ts';
import type { createLog } from '../cli/run/run-log.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import type { Complaints } from './notifications/blocked-notices.ts';
import { createLanes, type Lanes } from './person-runs.ts';
import type { Notifier } from './notifications/webhook-notifier.ts';
import type { MirrorAssignment } from './mirror-assignment.ts';

export interface HomeOptions {
  config: Config;
  shell: Shell;
  assignment: MirrorAssignment;
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

export interface State extends HomeOptions {
  opened: Opened | undefined;
  /** While it is asked whose the mirror is: until then nothing is done with it. */
  coming: Promise<Opened> | undefined;
  /** Aborted where the mirror is lost to another worker. */
  left: AbortController;
  complain: Complaints;
  log: ReturnType<typeof createLog>;
  alone: ReturnType<typeof pLimit>;
  notifier: Notifier | undefined;
}

export async function close(state: State, failure?: unknown): Promise<void> {
  await state.coming?.catch(() => undefined);
  const { opened } = state;
  state.opened = undefined;
  await opened?.lanes.close();
  await opened?.close(failure);
}

/** Throws Busy where the mirror is another's, Unavailable while Redis cannot say whose it is. */
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

/** With the configuration as it is now. */
export async function comeAgain(state: State): Promise<void> {
  try {
    await close(state);
    state.config = state.load();
    await come(state);
  } catch (error) {
    state.complain.of(error);
  }
}

export async function taken(state: State): Promise<void> {
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

/** Why the mirror is to be left; undefined: it is not. */
async function lostBy(kept: Promise<boolean>): Promise<unknown> {
  const another = 'another worker has become the home of this mirror → this one leaves it';
  try {
    return (await kept) ? undefined : new Busy(another);
  } catch (error) {
    return error;
  }
}

/** As the worker's, but that it stops too where the mirror is lost to another. */
export function shellOf({ shell, left }: State): Shell {
  return { ...shell, stop: AbortSignal.any([shell.stop, left.signal]) };
}
