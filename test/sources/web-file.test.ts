/** A file behind an address: what proves it, what spoils it, and what is waited out. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { nowhere, serveRaw } from '../support/http/test-server.ts';
import {
  crm,
  SECRET,
  status,
  type Reply,
  body,
  fileAt,
  lines,
  rows,
} from '../support/sources/http-crm.ts';
import { errorOf, readAll } from '../support/sources/source-reading.ts';

async function read(...replies: Reply[]) {
  const { url, asked } = await crm(...replies);
  const { csv, clock } = fileAt(url);
  return { ...(await readAll(csv, ['id'])), asked, slept: clock.slept };
}

/** Sends as much of the text as it was said to have, and cuts the line. */
const cut = (text: string) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-length': String(text.length + 1000) });
  response.write(text, () => response.destroy());
};

describe('a file behind a URL', () => {
  test('is read with its headers, to its length', async () => {
    const { values, certificate, asked } = await read(body(rows(3)));
    expect(values.map(({ id }) => id)).toEqual(['1', '2', '3']);
    expect(certificate.complete).toBe(true);
    expect(asked).toMatchObject([
      { path: '/people', headers: { authorization: SECRET, 'accept-encoding': 'gzip' } },
    ]);
  });

  test('can be NDJSON, compressed, transfer-encoded, or both', async () => {
    const text = lines(3000);
    const zip = gzipSync(text);
    const packed = { 'content-encoding': 'gzip' };
    for (const reply of [body(text), body(zip), body(zip, packed), body(gzipSync(zip), packed)]) {
      const { url } = await crm(reply);
      const { values, certificate } = await readAll(fileAt(url).ndjson, ['id']);
      expect([values.length, certificate.complete]).toEqual([3000, true]);
    }
  });

  test('can come in chunks, without a length', async () => {
    const chunked = (response: ServerResponse) => {
      response.write(rows(1));
      response.end('2,x,\n');
    };
    const { values, certificate } = await read(chunked);
    expect([values.length, certificate.complete]).toEqual([2, true]);
  });

  test('is read as fast as it is processed, whatever its size', async () => {
    const { records, certificate } = await read(body(gzipSync(rows(300_000))));
    expect([records.length, certificate.complete]).toEqual([300_000, true]);
  });

  test.each([
    ['etag', '"v1"', '"v2"'],
    ['last-modified', 'Thu, 15 Jan 2026 12:00:00 GMT', 'Thu, 15 Jan 2026 12:00:01 GMT'],
  ])('is the same reading while its %s is the same', async (...given) => {
    const [name, value, later] = given;
    const headers = { [name]: value };
    const other = body(rows(1), { [name]: later });
    const { url } = await crm(body(rows(1), headers), body(rows(1), headers), other);
    const { csv, clock } = fileAt(url);
    const readings: string[] = [];
    for (let time = 1; time <= 3; time += 1) {
      await clock.sleep(1000);
      readings.push((await readAll(csv)).certificate.reading);
    }
    expect(readings[0]).toBe(readings[1]);
    expect(readings[2]).not.toBe(readings[1]);
    expect(csv.still?.(readings[2] ?? '')).toBe(true);
    expect(csv.still?.(readings[1] ?? '')).toBe(false);
    await clock.sleep(15 * 60_000);
    expect(csv.still?.(readings[2] ?? '')).toBe(false);
  });

  test('is a new reading each time without either', async () => {
    const { url } = await crm(body(rows(1)));
    const { csv, clock } = fileAt(url);
    const first = (await readAll(csv)).certificate.reading;
    await clock.sleep(1);
    expect((await readAll(csv)).certificate.reading).not.toBe(first);
  });
});

describe('a file that breaks off', () => {
  test('gives what arrived, no half row, and no certificate', async () => {
    const { values, certificate, broken } = await read(cut(`${rows(2)}3,p3@example.c`));
    expect(values.map(({ id }) => id)).toEqual(['1', '2']);
    expect(broken).toEqual([]);
    if (certificate.complete) throw new Error('certified');
    expect(certificate.why).toMatch(
      /^reading stopped: 127\.0\.0\.1:\d+ cut the connection in the middle of its answer/,
    );
    const { url } = await crm(cut(`${lines(2)}{"id":3}`));
    const found = await readAll(fileAt(url).ndjson, ['id']);
    expect([found.values.length, found.certificate.complete]).toEqual([2, false]);
  });

  test('gives the same in chunks', async () => {
    const half = (response: ServerResponse) =>
      response.write(`${rows(2)}3,p`, () => response.destroy());
    const { values, certificate } = await read(half);
    expect([values.length, certificate.complete]).toEqual([2, false]);
  });

  test('cannot be told apart when its length is unknown', async () => {
    const url = await serveRaw((socket: Socket) =>
      socket.once('data', () =>
        socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${rows(2)}`),
      ),
    );
    const { values, certificate } = await readAll(fileAt(url).csv, ['id']);
    expect(values).toHaveLength(2);
    expect(certificate).toMatchObject({
      complete: false,
      why: 'the answer does not say how long it is, so it may be cut off',
    });
  });
});

describe('a permanent failure', () => {
  test.each<[string, Reply, string]>([
    [
      '401',
      status(401),
      'Invalid: crm refused the credentials (401) → correct the headers of the source, or its rights there',
    ],
    ['404', status(404), 'Invalid: crm has no such file (404) → correct path of the source'],
    ['400', status(400), 'Invalid: crm refused the request (400) → correct path of the source'],
    [
      'a redirect',
      status(302, { location: 'https://a.example/?k=ann@x.y' }),
      'Invalid: crm answered with a redirect (302) → write where it leads into path; the headers are sent nowhere else',
    ],
    [
      'a part',
      status(206),
      'Invalid: crm answered with a part of what was asked for (206) → have it answer with all of it; is path of the source the right address?',
    ],
    [
      'nothing',
      status(204),
      'Invalid: crm answered with no content (204) → have it answer with all of it; is path of the source the right address?',
    ],
    ['500', status(500), 'Unavailable: crm answered 500, after 4 attempts'],
    [
      'another packing',
      body('x', { 'content-encoding': 'br' }),
      'Invalid: crm packs the file as it was not asked to → have it use gzip or nothing',
    ],
    [
      'a cut at once',
      cut(''),
      'Unavailable: crm cut the connection in the middle of its answer (UND_ERR_SOCKET)',
    ],
    [
      'a missing column',
      body('email\nann@x.y\n'),
      'Invalid: crm: there is no column "id"; columns found: "email"; correct the configuration or the export',
    ],
  ])('%s', async (_, reply, line) => {
    const { url } = await crm(reply);
    const error = await errorOf(readAll(fileAt(url).csv, ['id']));
    expect(error.message).not.toMatch(/sk_secret|ann@|people/);
    expect(String(error).replace(/127\.0\.0\.1:\d+/, 'crm')).toBe(line);
  });

  test('with nobody there', async () => {
    const { csv } = fileAt(`${nowhere()}/people.csv`);
    expect((await errorOf(readAll(csv))).message).toMatch(/refused the connection/);
  });

  test('leaves no connection behind after a stop or an early end', async () => {
    const stop = new AbortController();
    const reason = new Error('stop');
    const { url } = await crm((response: ServerResponse) => {
      response.write(rows(1));
      stop.abort(reason);
    });
    await expect(readAll(fileAt(url).csv, ['id'], stop.signal)).rejects.toBe(reason);
    const { url: large } = await crm(body(rows(200_000)));
    const signal = new AbortController().signal;
    for await (const batch of fileAt(large).csv.read({ fields: [], signal })) {
      expect(batch).toHaveLength(500);
      break;
    }
  });
});
