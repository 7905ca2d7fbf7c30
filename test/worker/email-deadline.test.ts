/** An e-mail has a deadline, whatever the mail server does meanwhile. */
import { emailSink, type Message } from '../../src/worker/notifications/sinks.ts';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { untilHolds } from '../support/waiting.ts';

const message: Message = {
  id: 'msg_1',
  at: 0,
  mirror: 'world',
  run: null,
  items: [{ type: 'mirror.failed', level: 'error', title: 'it failed', reason: 'r', fix: '' }],
  link: undefined,
};

/** A mail server that greets, and then answers with a line that never ends its answer. */
async function dripping(at: string) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => void sockets.delete(socket));
    socket.write('220 drip\r\n');
    socket.on('data', (said) => {
      if (!String(said).startsWith(at)) return void socket.write('250 OK\r\n');
      const drip = setInterval(() => void socket.write('250-wait\r\n'), 20);
      socket.on('close', () => clearInterval(drip));
      return undefined;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const bound = server.address();
  const port = typeof bound === 'object' && bound ? bound.port : 0;
  return { sockets, smtp: `smtp://127.0.0.1:${port}` };
}

const sinkOf = (smtp: string, deadlineMs?: number) =>
  emailSink(
    { smtp, user: undefined, password: undefined, from: 'a@example.com', to: ['b@example.com'] },
    deadlineMs,
  );

test.each(['EHLO', 'MAIL', 'RCPT'])(
  'a server that never ends its answer to %s is left at the deadline, to be tried later',
  async (at) => {
    const { sockets, smtp } = await dripping(at);
    const outcome = await sinkOf(smtp, 300).deliver(message, new AbortController().signal);
    expect(outcome).toEqual({
      is: 'later',
      reason: expect.stringContaining('did not take the message within'),
    });
    await untilHolds(() => expect(sockets.size).toBe(0));
  },
);

test('a stop ends the attempt before the deadline', async () => {
  const { sockets, smtp } = await dripping('EHLO');
  const stop = new AbortController();
  const delivering = sinkOf(smtp).deliver(message, stop.signal);
  await untilHolds(() => expect(sockets.size).toBe(1));
  stop.abort(new Error('stop'));
  await expect(delivering).rejects.toThrow('stop');
  await untilHolds(() => expect(sockets.size).toBe(0));
});
