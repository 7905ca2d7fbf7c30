import Fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../domain/exchange.ts';
import { refuse, toAnswer } from './shared/api-answer.ts';
import type { Emulator } from './emulator.ts';

/** An emulator that accepts connections from this machine. */
export interface Served {
  url: string;
  /** Stops immediately and cuts all open connections. */
  close(): Promise<void>;
}

const MOST_BYTES = 1024 * 1024;

/** Serves the emulator on a loopback port, 0 for a free one. Throws the system's error. */
export async function serve({ receive }: Pick<Emulator, 'receive'>, port: number): Promise<Served> {
  const app = Fastify({
    bodyLimit: MOST_BYTES,
    forceCloseConnections: true,
    // The emulator itself decides which paths exist, so Fastify sees only one path.
    rewriteUrl: () => '/',
    clientErrorHandler: (_error, socket) => {
      if (!socket.writable) return;
      const { headers, body } = toAnswer(
        refuse(400, 'Malformed request', {
          why: 'The request line or a header is not valid HTTP, or the headers are too large.',
          fix: 'Send HTTP/1.1 with a method, a path without spaces, and headers of at most 16 kB.',
        }),
        { connection: 'close' },
      );
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const length = `content-length: ${Buffer.byteLength(body)}\r\n`;
      socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}${length}\r\n${body}`);
    },
  });
  // The platform parses bodies as JSON regardless of the content type.
  app.addHook('onRequest', async ({ raw }) => void delete raw.headers['content-type']);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));

  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, originalUrl: path, body } = request;
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const text = typeof body === 'string' ? body : '';
    const delivery = receive({ method, path, headers, body: text });
    if (delivery.is === 'whole') {
      if (delivery.delayMs > 0) await pause(delivery.delayMs);
      return send(reply, delivery.answer);
    }
    // From here on, this code owns the connection; a silent one is cut when the emulator closes.
    reply.hijack();
    if (delivery.is === 'reset') reply.raw.destroy();
    if (delivery.is === 'half') {
      const { answer: half } = delivery;
      const bytes = Buffer.from(half.body);
      reply.raw.writeHead(half.status, { ...half.headers, 'content-length': bytes.length });
      reply.raw.write(bytes.subarray(0, bytes.length / 2), () => reply.raw.destroy());
    }
    return reply;
  };
  app.all('/', answer);
  app.setNotFoundHandler(answer);
  app.setErrorHandler((error: FastifyError, _request, reply) => send(reply, toRefusal(error)));

  const url = await app.listen({ host: '127.0.0.1', port });
  return { url, close: () => app.close() };
}

function send(reply: FastifyReply, { status, headers, body }: Answer) {
  return reply.code(status).headers(headers).send(body);
}

/** Returns the response for a request that Fastify refuses: its body is too large, usually. */
function toRefusal({ statusCode, message }: FastifyError): Answer {
  if (statusCode === undefined) {
    const fix = 'Report it, with the request that led to it.';
    return toAnswer(refuse(500, 'Internal error', { why: message, fix }), {});
  }
  const outcome = refuse(statusCode, statusCode === 413 ? 'Request body too large' : message, {
    why: `The body could not be read; it may hold at most ${MOST_BYTES} bytes.`,
    fix: 'Send a smaller body, complete and with its true length.',
  });
  return toAnswer(outcome, {});
}
