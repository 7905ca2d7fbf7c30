/** A platform over a real socket that can be told to fail, request by request. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Emulator } from '../../../src/emulator/emulator.ts';
import type { Answer } from '../../../src/domain/exchange.ts';

/** One request as it arrived, whatever became of it. */
export interface Arrival {
  method: string;
  path: string;
  route: string;
  /** Parsed; empty for a request without one. */
  body: { email?: string; contact_id?: string; subscription?: string; name?: string };
  /** The how-manieth of its route, from 1. */
  nth: number;
  channel: string;
  /** What was answered; 0 for nothing. */
  status: number;
  /** How many requests had arrived when its answer left. */
  answeredAfter: number;
}

/**
 * `acts`: whether the platform carried the request out all the same; it does not unless told to.
 */
export type Fault = { acts?: boolean } & (
  | { is: 'answer'; status: number; body?: unknown; headers?: Record<string, string> }
  | { is: 'cut' | 'hang' | 'half' }
  /** The platform's own answer, changed. */
  | { is: 'rewrite'; by(answer: Answer): Answer }
);

export interface Played {
  when(arrival: Arrival): boolean;
  fault: Fault;
  times: number;
  hits: number;
}

export interface Server {
  url: string;
  /** Every request since the beginning. */
  arrived: Arrival[];
  /** The first fault that fits, and has times left, is played; `undo` ends it. */
  fail(when: Played['when'], fault: Fault, times?: number): Played & { undo(): void };
  /**
   * Called when a request has arrived (what that promises is waited for), when the platform has
   * carried it out, and when its answer has left.
   */
  watch: {
    arrived?(arrival: Arrival): void | Promise<void>;
    acted?(arrival: Arrival): void;
    answered?(arrival: Arrival): void;
  };
  delayMs: number;
  /** Resolves once nobody is connected: all that a dead process had sent has been carried out. */
  quiet(): Promise<void>;
}

/** A platform over a real socket. */
export async function servePlatform(emulator: Pick<Emulator, 'handle'>): Promise<Server> {
  const plays: Played[] = [];
  const server: Server = { url: '', arrived: [], watch: {}, delayMs: 0, fail, quiet };
  const atWork = new Set<IncomingMessage>();
  function fail(when: Played['when'], fault: Fault, times = Infinity) {
    const play = { when, fault, times, hits: 0 };
    plays.push(play);
    return Object.assign(play, { undo: () => void (play.times = 0) });
  }
  const http = createServer((request, response) => {
    request.on('error', () => undefined);
    atWork.add(request);
    void textOf(request)
      .then(
        async (text) => answer(request, response, text),
        // Its sender died in the middle of it: it never arrived.
        () => undefined,
      )
      .finally(() => atWork.delete(request));
  });
  async function quiet(): Promise<void> {
    // The pause lets those in who wait at the door.
    do await pause(2);
    while (atWork.size > 0 || (await connectionsOf(http)) > 0);
  }
  async function answer(request: IncomingMessage, response: ServerResponse, text: string) {
    const arrival = arrivalOf(request, text, server.arrived);
    server.arrived.push(arrival);
    const { method, path } = arrival;
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    await server.watch.arrived?.(arrival);
    if (server.delayMs > 0) await pause(server.delayMs);
    const play = plays.find(({ when, times, hits }) => hits < times && when(arrival));
    if (play) play.hits += 1;
    const acts = !play || play.fault.acts === true || play.fault.is === 'rewrite';
    const own = acts ? emulator.handle({ method, path, headers, body: text }) : undefined;
    if (acts) server.watch.acted?.(arrival);
    response.once('finish', () => server.watch.answered?.(arrival));
    reply(response, arrival, { fault: play?.fault, own });
    arrival.answeredAfter = server.arrived.length;
  }
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const bound = http.address();
  if (bound === null || typeof bound === 'string') throw new Error('not bound to a port');
  server.url = `http://127.0.0.1:${bound.port}`;
  return server;
}

async function connectionsOf(http: HttpServer): Promise<number> {
  return new Promise((resolve, reject) => {
    http.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

function reply(
  response: ServerResponse,
  arrival: Arrival,
  { fault, own }: { fault: Fault | undefined; own: Answer | undefined },
): void {
  if (fault?.is === 'hang') return;
  if (fault?.is === 'cut') return void response.destroy();
  const plain = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' };
  let said = own ?? plain;
  if (fault?.is === 'rewrite') said = fault.by(said);
  if (fault?.is === 'answer') {
    const { status, body = { message: `answered ${status}`, why: 'told to', fix: 'none' } } = fault;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    said = { status, headers: { ...plain.headers, ...fault.headers }, body: text };
  }
  arrival.status = said.status;
  if (fault?.is !== 'half')
    return void response.writeHead(said.status, said.headers).end(said.body);
  response.writeHead(said.status, { ...said.headers, 'content-length': said.body.length + 50 });
  response.write(said.body.slice(0, 20), () => response.destroy());
}

const routes: [method: string, path: RegExp, route: string][] = [
  ['GET', /^\/api\/contacts\/list/, 'contacts.list'],
  ['GET', /^\/api\/contacts\/retrieve\//, 'contacts.retrieve'],
  ['DELETE', /^\/api\/contacts\//, 'contacts.delete'],
  ['POST', /^\/api\/contacts\/channel\//, 'contacts.enrol'],
  ['GET', /^\/api\/template\/v1\/list/, 'templates.list'],
  ['POST', /^\/api\/template\/v1\/create$/, 'templates.create'],
  ['PUT', /^\/api\/template\/v1\//, 'templates.update'],
];

function arrivalOf(request: IncomingMessage, text: string, before: Arrival[]): Arrival {
  const { method = '', url: path = '' } = request;
  const route = routes.find(([m, p]) => m === method && p.test(path))?.[2] ?? 'none';
  const nth = before.filter((other) => other.route === route).length + 1;
  const channel = /\/channel\/([^/?]+)/.exec(path)?.[1] ?? '';
  const body = text === '' ? {} : JSON.parse(text);
  return { method, path, route, body, nth, channel, status: 0, answeredAfter: 0 };
}
