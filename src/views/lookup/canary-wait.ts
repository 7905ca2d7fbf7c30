/** Tells whether a person belongs to a canary that is under way, and whether the person waits. */
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import type { Change } from '../../domain/change.ts';
import type { Key } from '../../domain/record.ts';
import { openIn, storedCanaries } from '../../engine/guard/canary-book.ts';
import { memberOf } from '../../engine/guard/canary-slice.ts';
import { canaryWords, tellCanary, type ToldCanary } from '../../engine/report/canary-text.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/** A canary, and what it means for one person. */
export interface PersonCanary extends ToldCanary {
  /** Whether the person is in the slice. */
  member: boolean;
  /** Whether a change of the person waits for the slice. */
  waits: boolean;
}

/** Returns the canaries that are about the next changes of a person. */
export function canariesAbout(
  { meta, guarded }: Snapshot,
  { policy: { canary: policy } }: Config,
  { key, sends }: { key: Key; sends: readonly Change[] },
): PersonCanary[] | undefined {
  if (!policy) return undefined;
  return openIn(storedCanaries(meta)).flatMap(([guard, canary]) => {
    const own = sends.filter((change) => change.guard === guard && !isStated(change));
    if (own.length === 0) return [];
    // Until all of the slice is changed, nobody knows better than the hash.
    const isSent = () => guarded.canary.sent(guard, canary.run).some((one) => one.key === key);
    const member = memberOf(canary)(key) && (canary.state === 'applying' || isSent());
    const waits = !member && canary.state !== 'failed';
    return [{ ...tellCanary(guard, canary, policy), member, waits }];
  });
}

const reasoned = z.object({ cause: z.string().optional(), shown: z.string().optional() });

/** Returns whether the CRM states the change about this very person, so that it never waits. */
function isStated({ op, body, why }: Change): boolean {
  const { cause, shown } = reasoned.parse(JSON.parse(body));
  if (op === 'delete') return why?.says === 'deleted' || shown !== undefined;
  return op === 'opt_out' && (cause === 'stated' || cause === 'flag');
}

/** Formats these canaries. */
export function canaryLines(canaries: readonly PersonCanary[] = []): string[] {
  return canaries.map((one) => {
    const who = one.member ? 'in the slice' : 'not in the slice';
    const wait = one.waits ? ', so the change waits' : '';
    return `${canaryWords(one)}; this person is ${who}${wait}`;
  });
}
