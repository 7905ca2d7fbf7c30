/** A network between a client and a port of this machine: every byte is late, none overtakes. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';

/** There and back, in milliseconds. */
export type Latency = readonly [least: number, most: number];

/** Answers the address at which the one given can be reached from afar. */
export async function farAway(url: string, latency: Latency): Promise<string> {
  const { port, hostname: host } = new URL(url);
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: Number(port), host, noDelay: true });
    carry(near, far, latency);
    carry(far, near, latency);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bound: AddressInfo | string | null = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('not bound to a port');
  return `http://127.0.0.1:${bound.port}`;
}

/** What comes in goes out after half a way, in the order in which it came. */
function carry(from: Socket, to: Socket, [least, most]: Latency): void {
  let lastMs = 0;
  const later = (act: () => void): void => {
    const dueMs = performance.now() + (least + Math.random() * (most - least)) / 2;
    lastMs = Math.max(lastMs, dueMs);
    setTimeout(act, Math.max(0, lastMs - performance.now()));
  };
  from.on('data', (bytes) => later(() => void (to.writable && to.write(bytes))));
  from.on('close', () => later(() => to.destroy()));
  from.on('error', () => from.destroy());
}
