import type { Emulator } from '../../../src/emulator/emulator.ts';
import type { Clock } from '../../../src/domain/clock.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Send } from '../../../src/domain/exchange.ts';

export interface WireOptions {
  clock: Clock;
  /** How long the client waits for an answer. */
  timeoutMs?: number;
}

/** A client's `send` to an emulator in the same process: faults are what a socket makes of them. */
export function toSend(
  emulator: Pick<Emulator, 'receive'>,
  { clock, timeoutMs = 10_000 }: WireOptions,
): Send {
  return async (request, signal) => {
    signal?.throwIfAborted();
    const headers = { ...request.headers, 'user-agent': 'test' };
    const delivery = emulator.receive({ ...request, headers });
    const waitMs = delivery.is === 'silence' ? timeoutMs : 0;
    await wait(clock, delivery.is === 'whole' ? delivery.delayMs : waitMs, signal);
    if (delivery.is === 'whole' && delivery.delayMs < timeoutMs) return delivery.answer;
    throw new Unavailable(`the emulator answered with ${delivery.is}`, { acted: 'maybe' });
  };
}

/** A request that is given up once it was written may have had its effect. */
async function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms === 0) return;
  try {
    await clock.sleep(ms, signal);
  } catch (cause) {
    throw new Unavailable('given up', { acted: 'maybe', cause });
  }
}
