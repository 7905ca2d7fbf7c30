/**
 * Works on the events of a mirror: updates the person of a record, or forgets the people of a
 * record that the CRM has erased, if the server that took the event has signed that.
 *
 * Redis vouches for no erasure on its way: the server that took the event of the CRM seals the id
 * of the record, and the worker acts on nothing else.
 */
import { Interrupted, Invalid } from '../domain/errors.ts';
import { isUnloaded } from '../engine/context/run-context.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { eraseTold } from '../engine/erasure/privacy-deletions.ts';
import { refusePaused } from '../compose/mirror-files.ts';
import type { Heard, Worked } from '../compose/queues/event-queue.ts';
import { type Order, type Seal, sealIn } from '../compose/queues/payload-encryption.ts';
import { runNow } from '../app/run/run-command.ts';
import { isLocked, isPassing, type Opened, shellOf, type State, use } from './open-mirror.ts';

interface Told {
  id: string;
  heard: Heard;
  signature: string;
}

/** Does what an event about a record asks for. Never throws. */
export async function workOn(state: State, told: Told): Promise<Worked> {
  const { shell, config, complain } = state;
  if (shell.stop.aborted || (state.coming && !isLocked(state))) return 'elsewhere';
  let isOpen = false;
  try {
    return await use(state, async (opened) => {
      isOpen = true;
      refusePaused(opened.mirror.snapshot.meta, config);
      // If no full run has ended yet, the first run of the schedule is made at once: it is a full
      // one, and loads everybody at a time, while events would load one person after the other.
      const { full, fast } = config.schedule?.patterns ?? {};
      const isScheduled = full !== undefined || fast !== undefined;
      if (isScheduled && isUnloaded(opened.mirror)) state.retries.begin('fast');
      return told.heard === 'erased' ? erase(state, told, opened) : record(state, told.id, opened);
    });
  } catch (error) {
    if (error instanceof Interrupted) return 'again';
    complain.of(error);
    return isOpen || !isPassing(error) ? 'again' : 'elsewhere';
  }
}

/** Runs for the person of one record, in parallel with other runs. */
async function record(state: State, id: string, { lanes }: Opened): Promise<Worked> {
  const by = { by: 'event' } as const;
  const progress = () => undefined;
  const options = { writes: true, progress, by, mode: { record: id }, only: 'contacts' } as const;
  const inner = shellOf(state);
  const summary = await lanes.run((mirror) => runNow(mirror, inner, options));
  const { status, contacts, reasonCodes } = summary;
  // A run for one event that changed nothing is not logged.
  if (status !== 'done' || Object.values(contacts.applied).some((n) => n > 0)) {
    state.log.ended(summary, 'event');
    state.ended(summary);
  }
  if (status === 'interrupted') return 'again';
  // An opt-in that waits for the end of the quarantine is left to the next run about all people.
  const isOver = status !== 'failed' || reasonCodes.every((code) => code === 'quarantined');
  return isOver ? 'done' : 'again';
}

/** The remainder of the event is handled as a change, and so is an event that is not signed. */
async function erase(state: State, told: Told, opened: Opened): Promise<Worked> {
  const { id } = told;
  const { stop: signal, abort } = shellOf(state);
  const seal = sealIn(state.config);
  if (!seal) throw new Invalid(`${state.config.memory.keyFile}: the key of the memory is gone`);
  const { rest, people } = await opened.lanes.sibling(async ({ mirror }) => {
    const { snapshot, clock } = mirror;
    const order = openErasure(seal, told, { snapshot, now: clock.now() });
    if (!order) return { rest: 'event', people: [] };
    const erased = await eraseTold(mirror, id, { signal, abort });
    if (erased.rest !== 'again') {
      const { number, expiresAt } = order;
      snapshot.transaction(() => snapshot.usedNumbers.use(number, expiresAt, clock.now()));
    }
    return erased;
  });
  for (const one of people) {
    state.log.erased(one);
    if (one.is === 'failed') state.complain.of(one.told.failure);
    if (one.is === 'held') state.notifier?.ran();
  }
  if (rest === 'event') return record(state, id, opened);
  return rest === 'again' ? 'again' : 'done';
}

/** Returns the signature of the server that took an erasure from the CRM. */
export function sealErasure(seal: Seal, id: string, now: number): string {
  return seal.closeOrder(textOf(id), 'event', now).sealed;
}

/**
 * Returns the order to erase the record, or undefined if no server of this mirror has signed that,
 * it has expired, or it was carried out before.
 */
export function openErasure(
  seal: Seal,
  { id, signature }: { id: string; signature: string },
  { snapshot, now }: { snapshot: Snapshot; now: number },
): Order | undefined {
  try {
    const order = seal.openOrder(signature, 'event', now);
    if (order.text === textOf(id) && !snapshot.usedNumbers.has(order.number)) return order;
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
  }
  return undefined;
}

function textOf(id: string): string {
  return JSON.stringify({ erased: id });
}
