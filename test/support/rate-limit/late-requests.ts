/** What a machine that stands still does to requests that have their permits. */
import { CEILING } from '../../../src/rate-limit/route-budget.ts';

const LOOK_MS = 20;
/** Some delay is part of every machine; a window that is a second long allows for it. */
const STALL_MS = 200;

let stalls = 0;
let lookedMs = performance.now();
setInterval(() => {
  const nowMs = performance.now();
  if (nowMs - lookedMs > LOOK_MS + STALL_MS) stalls += 1;
  lookedMs = nowMs;
}, LOOK_MS).unref();

/**
 * Returns how many requests may have reached the platform a window late since it was called. When
 * this process stands still, all requests in flight do.
 */
export function countLate(): () => number {
  const before = stalls;
  return () => CEILING * (stalls - before);
}
