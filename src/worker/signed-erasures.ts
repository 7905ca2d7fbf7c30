/**
 * Signs erasures of CRM records on their way through Redis, which vouches for none: the server that
 * took the event of the CRM seals the id of the record, and the worker acts on nothing else.
 */
import { Invalid } from '../domain/errors.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Order, Seal } from '../compose/queues/payload-encryption.ts';

/** Returns the signature. */
export function sealErasure(seal: Seal, id: string, now: number): string {
  return seal.closeOrder(textOf(id), 'event', now).sealed;
}

/** An erasure as Redis has it. */
interface Told {
  id: string;
  signature: string;
}

/**
 * Returns the order to erase the record, or undefined if no server of this mirror has signed that,
 * it has expired, or it was carried out before.
 */
export function openErasure(
  seal: Seal,
  { id, signature }: Told,
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
