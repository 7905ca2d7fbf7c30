/**
 * Follows the assignment of a mirror: claims the mirror when its turn comes, keeps it, releases it
 * to another worker, and claims it again. open-mirror.ts says what that means for its files.
 */
import { Busy, Interrupted, Unavailable } from '../domain/errors.ts';
import { retrySchedules } from '../domain/retry-schedules.ts';
import { systemClock } from '../http/system-clock.ts';
import { close, isAssigned, type State, use } from './open-mirror.ts';

/** How often to check whether the mirror is still assigned to this worker. */
const stayMs = 5_000;

/**
 * Waits until the mirror is assigned to this worker or the worker is asked to stop. Throws the
 * errors of `assemble`.
 */
export async function taken(state: State): Promise<void> {
  const { shell, complain, turns, config, capacity } = state;
  const claimed = async (): Promise<void> => use(state, async () => undefined);
  while (!shell.stop.aborted) {
    if (turns) {
      if (turns.isOthers(config.mirror)) state.owner = 'another';
      await turns.turn(config.mirror, shell.stop);
      if (shell.stop.aborted) return;
    }
    try {
      await (capacity ? capacity.claims(claimed) : claimed());
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
    if (!isAssigned(state) || shell.stop.aborted) continue;
    const failure = await lostBy(assignment.keep());
    if (failure === undefined) continue;
    complain.of(failure);
    state.owner = 'another';
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
