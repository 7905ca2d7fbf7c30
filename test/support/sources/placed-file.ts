/** Files of people, as they come from an address or through a pipe. */
import type { ServerResponse } from 'node:http';
import { csvSource } from '../../../src/sources/csv/csv-source.ts';
import { csvOptions } from '../../../src/sources/csv/options.ts';
import { ndjsonSource } from '../../../src/sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../../src/sources/ndjson/options.ts';
import { SECRET } from './http-crm.ts';
import { virtualClock } from './source-reading.ts';

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
