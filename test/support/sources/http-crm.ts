import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { httpOptions } from '../../../src/sources/http/options.ts';
import { httpSource } from '../../../src/sources/http/http-source.ts';
import type { Source } from '../../../src/sources/source.ts';
import { serve } from '../http/test-server.ts';
import { virtualClock } from './source-reading.ts';
import { csvSource } from '../../../src/sources/csv/csv-source.ts';
import { csvOptions } from '../../../src/sources/csv/options.ts';
import { ndjsonSource } from '../../../src/sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../../src/sources/ndjson/options.ts';

// A CRM of one page after the other over real HTTP, and a source that reads it in virtual time.

export const SECRET = 'Bearer sk_secret';

interface Asked {
  /** Path and query. */
  path: string;
  headers: IncomingHttpHeaders;
}

/** What one request is answered with: JSON of a value, or whatever is done to the response. */
export type Reply = object | ((response: ServerResponse) => void);

/** Answers with the replies in turn, the last one for ever. */
export async function crm(...replies: Reply[]) {
  const asked: Asked[] = [];
  const url = await serve(({ url: path = '', headers }, response) => {
    asked.push({ path, headers });
    const reply = replies[Math.min(asked.length, replies.length) - 1];
    if (typeof reply === 'function') reply(response);
    else json(reply)(response);
  });
  return { url: `${url}/people`, asked };
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}) {
  return (response: ServerResponse) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body));
}

export function status(code: number, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => response.writeHead(code, headers).end('ann@example.com');
}

/** `count` people, the first of them with this number. */
export function people(first: number, count: number) {
  return Array.from({ length: count }, (_, at) => ({
    id: first + at,
    email: `p${first + at}@x.y`,
  }));
}

interface Read {
  source: Source;
  clock: ReturnType<typeof virtualClock>;
}

/** The source of options as they stand in a configuration. */
export function sourceOf(url: string, options: object = {}, timeoutMs = 20_000): Read {
  const clock = virtualClock();
  const headers = { Authorization: SECRET };
  const parsed = httpOptions.parse({ type: 'http', url, headers, timeoutMs, ...options });
  return { source: httpSource(parsed, { id: 'id', clock, random: () => 1 }), clock };
}

// Files of people, as they come from an address or through a pipe.

export function rows(count: number): string {
  const line = (_: unknown, at: number) => `${at + 1},p${at + 1}@example.com,no\n`;
  return `id,email,news\n${Array.from({ length: count }, line).join('')}`;
}

export function lines(count: number): string {
  const line = (_: unknown, at: number) => `{"id":${at + 1},"email":"p${at + 1}@example.com"}\n`;
  return Array.from({ length: count }, line).join('');
}

/** A source of the file behind an address. */
export function fileAt(url: string, options: object = {}) {
  const clock = virtualClock();
  const surroundings = { clock, random: () => 1 };
  const headers = { Authorization: SECRET };
  const given = { path: url, headers, ...options };
  const csv = () => csvSource(csvOptions.parse({ type: 'csv', ...given }), surroundings);
  const ndjson = () =>
    ndjsonSource(ndjsonOptions.parse({ type: 'ndjson', ...given }), surroundings);
  return { csv: csv(), ndjson: ndjson(), clock };
}

/** Answers with this body, whole and with its length. */
export function body(content: string | Buffer, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    const length = String(Buffer.byteLength(content));
    response.writeHead(200, { 'content-length': length, ...headers }).end(content);
  };
}
