/** Converts the signals of the process into requests to stop, and waits for one. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Interrupted } from '../../domain/errors.ts';

/** How long after the first signal work in flight is abandoned. */
const patienceMs = 8_000;
const sameSignalMs = 1_000;
const twinMs = 250;
const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Converts signals into `stop` and `abort`: the first signal stops, and another one more than a
 * second later aborts. The delay is needed because process groups and launchers send the same
 * signal twice in quick succession. A closed terminal (SIGHUP) stops as SIGTERM does.
 */
export function stopSignals(): { stop: AbortSignal; abort: AbortSignal } {
  const stop = new AbortController();
  const abort = new AbortController();
  let since = 0;
  process.channel?.unref();
  process.on('disconnect', () => process.emit('SIGTERM', 'SIGTERM'));
  for (const signal of ignoresHangUp() ? signals : ([...signals, 'SIGHUP'] as const)) {
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

/**
 * Returns whether this process was started to outlive its terminal, for example by `nohup`: a
 * listener would end that.
 */
function ignoresHangUp(): boolean {
  try {
    const [, ignored] =
      /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return ignored !== undefined && (Number.parseInt(ignored.slice(-1), 16) & 1) === 1;
  } catch {
    // Without /proc, a hang-up ends the process as it does by default.
    return true;
  }
}

/** Keeps the process alive until it is asked to stop. */
export async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // While Redis is away, nothing else keeps a worker alive.
  const alive = setInterval(() => undefined, 60_000);
  await once(stop, 'abort');
  clearInterval(alive);
}
