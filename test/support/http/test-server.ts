import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

type Reply = (request: IncomingMessage & { text: string }, response: ServerResponse) => void;

/** A real HTTP server for one test; answers its address. */
export async function serve(reply: Reply): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () =>
      reply(Object.assign(request, { text: Buffer.concat(chunks).toString() }), response),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return address(server.address());
}

/** A real TCP server for one test, for what no HTTP server would do. */
export async function serveRaw(talk: (socket: Socket) => void): Promise<string> {
  const open = new Set<Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return address(server.address());
}

/** A port that no program is given by chance: nobody listens there while tests run side by side. */
export function nowhere(): string {
  return 'http://127.0.0.1:1';
}

function address(bound: AddressInfo | string | null): string {
  if (bound === null || typeof bound === 'string') throw new Error('not bound to a port');
  return `http://127.0.0.1:${bound.port}`;
}
