import type { Redis } from 'ioredis';

/** Says once that a connection was lost, and why, and once (undefined) that it is there again. */
export function hearOf(
  connection: Redis,
  notice: (lost: string | undefined) => void,
): { ignore(): void } {
  let is: 'opening' | 'there' | 'lost' = 'opening';
  let reason = 'it closed the connection';
  let ignored = false;
  connection.on('error', (error: Error) => (reason = error.message));
  connection.on('ready', () => {
    if (is === 'lost' && !ignored) notice(undefined);
    is = 'there';
  });
  connection.on('close', () => {
    if (is !== 'lost' && !ignored) notice(reason);
    is = 'lost';
  });
  return { ignore: () => void (ignored = true) };
}
