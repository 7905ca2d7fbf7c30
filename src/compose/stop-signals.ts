/** Converts the signals of the process into requests to stop, and waits for one. */
import { once } from 'node:events';
import { Interrupted } from '../domain/errors.ts';

/** How long after the first signal work in flight is abandoned. */
const patienceMs = 8_000;
const sameSignalMs = 1_000;
const twinMs = 250;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Converts signals into `stop` and `abort`: the first signal stops, and another one more than a
 * second later aborts. The delay is needed because process groups and launchers send the same
 * signal twice in quick succession. A closed terminal (SIGHUP) stops as SIGTERM does, also
 * under `nohup`: Node restores the default of an ignored signal when it starts.
 */
export function stopSignals(): { stop: AbortSignal; abort: AbortSignal } {
  const stop = new AbortController();
  const abort = new AbortController();
  let since = 0;
  process.channel?.unref();
  process.on('disconnect', () => process.emit('SIGTERM', 'SIGTERM'));
  for (const signal of signals) {
    process.on(signal, () => {
      const reason = new Interrupted(signal === 'SIGHUP' ? 'SIGTERM' : signal);
      if (!stop.signal.aborted) {
        since = performance.now();
        setTimeout(() => abort.abort(reason), patienceMs).unref();
        // The process must stay alive for the second copy of the signal, which could otherwise hit
        // it during exit.
        setTimeout(() => undefined, twinMs);
        stop.abort(reason);
      } else if (performance.now() - since > sameSignalMs) abort.abort(reason);
    });
  }
  return { stop: stop.signal, abort: abort.signal };
}

/** Keeps the process alive until it is asked to stop. */
export async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // While Redis is away, nothing else keeps a worker alive.
  const alive = setInterval(() => undefined, 60_000);
  await once(stop, 'abort');
  clearInterval(alive);
}
