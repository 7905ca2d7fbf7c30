/** Counts the requests that may arrive late because this process was suspended. */
import { CEILING } from '../../../src/rate-limit/route-budget.ts';

const SAMPLE_MS = 20;
/** Some delay is part of every machine; a window that is a second long allows for it. */
const SUSPENDED_MS = 200;

/**
 * Returns how many requests may have reached the platform a window late since this was called, and
 * stops counting. Whenever this process is suspended, all requests in flight may, up to CEILING of
 * each worker. No more than half of all requests are allowed to, so that a bound can still fail.
 */
export function countLate(requests: number, workers = 1): () => number {
  let suspended = 0;
  let sampledMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - sampledMs > SAMPLE_MS + SUSPENDED_MS) suspended += 1;
    sampledMs = nowMs;
  }, SAMPLE_MS).unref();
  return () => {
    clearInterval(timer);
    return Math.min(requests / 2, CEILING * workers * suspended);
  };
}
