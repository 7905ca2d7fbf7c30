/** Sets time limits that hold for a process that was suspended, too. */

/** Long enough to read the responses to everything in flight. */
const READING_MS = 100;

/**
 * Calls `expire` after `ms` milliseconds; the returned function cancels that. If the process was
 * suspended (a slow disk, a sleeping machine), the response may have arrived unread, so `expire`
 * waits until it would have been read, unless `isSent` returns false.
 */
export function setDeadline(ms: number, expire: () => void, isSent = () => true): () => void {
  const overdue = (): void => {
    if (isSent()) timer = setTimeout(expire, READING_MS);
    else expire();
  };
  let timer = setTimeout(overdue, ms);
  return () => clearTimeout(timer);
}
