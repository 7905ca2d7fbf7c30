/** The two ways of a rehearsal to a platform: the real one, which is only read, and an emulator. */
import type { Clock } from '../../domain/clock.ts';
import { Unavailable } from '../../domain/errors.ts';
import type { Answer, Send } from '../../domain/exchange.ts';
import type { Emulator } from '../../emulator/emulator.ts';

/** Refuses every request that could change something on the platform. `count` counts the others. */
export function onlyReads(send: Send) {
  let sent = 0;
  const only: Send = async (request, signal) => {
    if (request.method !== 'GET') {
      throw new Error(`a rehearsal only reads the platform, and this is a ${request.method}`);
    }
    sent += 1;
    return send(request, signal);
  };
  return { send: only, count: () => sent };
}

/** The way to an emulator in this process. */
export interface Way {
  clock: Clock;
  /** How long a request and its response travel together. */
  latencyMs: number;
  /** After this time, a request has no response. */
  timeoutMs: number;
}

/** Returns a function that sends requests to the emulator, on which its faults occur. */
export function sendInProcess(receive: Emulator['receive'], way: Way): Send {
  const { clock, latencyMs, timeoutMs } = way;
  const lost = (why: string) => new Unavailable(`the platform ${why}`, { acted: 'maybe' });
  const travel = async (ms: number, signal: AbortSignal | undefined): Promise<void> => {
    try {
      await clock.sleep(Math.min(ms, timeoutMs), signal);
    } catch {
      throw lost('was left before its answer was complete: asked to stop');
    }
    if (ms >= timeoutMs) throw lost(`did not answer within ${timeoutMs} ms`);
  };
  return async (request, signal): Promise<Answer> => {
    signal?.throwIfAborted();
    await travel(latencyMs, signal);
    const headers = { ...request.headers, 'user-agent': 'crm-mirror' };
    const delivery = receive({ ...request, headers });
    if (delivery.is === 'whole') {
      if (delivery.delayMs > 0) await travel(delivery.delayMs, signal);
      return delivery.answer;
    }
    if (delivery.is === 'silence') await travel(timeoutMs, signal);
    throw lost('cut the connection');
  };
}
