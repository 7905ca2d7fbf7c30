/** Receivers of notifications on real sockets, and a mirror that reports to them. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';
import type { Notice } from '../../../src/views/status/trouble-notice.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { createNotifier } from '../../../src/worker/notifications/notifier.ts';
import { quickClock } from '../engine/engine-world.ts';
import { mirrored, type Mirrored, shellThat } from './mirrored-contacts.ts';

/** One request that a receiver got. */
export interface Heard {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

interface FullReply {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  /** The answer is given after this. */
  after?: Promise<unknown>;
}

/** One answer of a receiver: a status, or more. */
type Reply = number | FullReply;

/** Somebody's server, which gives these answers, one after the other, and then 204. */
export async function receiver(...replies: Reply[]) {
  const heard: Heard[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    heard.push({ path: request.url ?? '', headers: request.headers, body });
    const reply = replies.shift() ?? 204;
    const full: FullReply = typeof reply === 'number' ? { status: reply } : reply;
    const { status, headers = {}, body: said, after } = full;
    await after;
    response.writeHead(status, headers).end(said);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const origin = `http://127.0.0.1:${portOf(server.address())}`;
  return { heard, replies, origin, url: `${origin}/hooks/crm?to=ops` };
}

/** A mail server on this machine that takes one user and keeps what it gets. */
export async function mailServer(options: SMTPServerOptions = {}) {
  const mails: { to: string[]; user: string | undefined; text: string }[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    authOptional: true,
    onAuth({ username, password }, _session, done) {
      const isRight = username === 'ops' && password === 'p@ss/w#rd';
      if (isRight) done(null, { user: username });
      else done(new Error('Invalid username or password'));
    },
    onData(stream, { envelope, user }, done) {
      let got = '';
      stream.on('data', (chunk: Buffer) => void (got += chunk.toString()));
      stream.on('end', () => {
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ to, user: user === undefined ? undefined : String(user), text: got });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    server.close(resolve);
    await promise;
  });
  return { mails, host: `127.0.0.1:${portOf(listening.address())}` };
}

function portOf(bound: AddressInfo | string | null): number {
  return typeof bound === 'object' && bound ? bound.port : 0;
}

/** One line of the log about a notice. */
interface Told {
  notice: Notice | undefined;
  why: string | undefined;
  to: string | undefined;
  but?: string;
}

/** A mirror that reports to these receivers, which have heard nothing yet. */
export async function reporting(
  notices: Record<string, unknown>,
  server?: Record<string, unknown>,
) {
  const world = await mirrored();
  world.config({ notices, ...(server && { server }) });
  const told: Told[] = [];
  const stop = new AbortController();
  const shell = shellThat({ stop: stop.signal });
  const noticed = (notice?: Notice, why?: string, about?: { to: string; but?: string }) =>
    void told.push({ notice, why, to: about?.to, ...(about?.but && { but: about.but }) });
  const clock = quickClock();
  const open = () => {
    const options = { shell, noticed, clock, random: () => 0.5 };
    return createNotifier(loadConfig(world.file, {}), options);
  };
  const begin = () => {
    const notifier = open();
    if (!notifier) throw new Error('nobody is to be told');
    onTestFinished(async () => notifier.close());
    return notifier;
  };
  /** Runs once, tells what there is to tell, and waits until it is told, as a new process does. */
  const run = async () => {
    const { code } = await world.call('sync');
    const notifier = begin();
    notifier.ran();
    await notifier.close();
    return code;
  };
  return { world, told, stop, clock, open, begin, run };
}

/** The platform answers every listing with this status. */
export const refusing = (world: Mirrored, status: number) =>
  world.server.fail(({ path }) => path.startsWith('/api/contacts/list'), { is: 'answer', status });
