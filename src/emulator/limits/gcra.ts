import { TINY, type Algorithm, type Meter } from './limit-meter.ts';

/**
 * Capacity comes back evenly, one request after each `window / limit`, up to the whole limit. It is
 * stored as one number: the time at which everything allowed so far is paid off.
 */
export const gcra: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  const eachMs = windowMs / requests;
  let paidAt = Number.NEGATIVE_INFINITY;
  return ({ monotonic }) => {
    const due = Math.max(paidAt, monotonic);
    const saved = () => (windowMs - (Math.max(paidAt, monotonic) - monotonic)) / eachMs;
    const allowed = saved() + TINY >= 1;
    if (allowed) paidAt = due + eachMs;
    const remaining = Math.floor(saved() + TINY);
    return { allowed, remaining, resetMs: Math.max(0, remaining + 1 - saved()) * eachMs };
  };
};
