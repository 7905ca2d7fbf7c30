/** What changed since a time, asked of an API: which times, what is proven, and what is lost. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Certificate, SourceRecord } from '../../src/sources/source.ts';
import { crm, json, people, sourceOf, status, type Reply } from '../support/sources/http-crm.ts';
import { errorOf, readAll } from '../support/sources/source-reading.ts';

const NOON = 'Thu, 15 Jan 2026 12:00:00 GMT';
const LATER = 'Thu, 15 Jan 2026 12:30:07 GMT';
const at = (date: string, body: unknown, code = 200) => json(body, code, { date });
const undated = (body: unknown) => (response: ServerResponse) => {
  response.sendDate = false;
  json(body)(response);
};

type Options = Record<string, unknown>;

/** A source whose changes are asked for, and the CRM behind it. */
async function told({ changes, ...rest }: Options, ...replies: Reply[]) {
  const { url, asked } = await crm(...replies);
  const { origin } = new URL(url);
  const { source, clock } = sourceOf(url, {
    one: `${url}/{id}`,
    changes: { url: `${origin}/new?sort=id&since={since}`, ...Object(changes) },
    ...rest,
  });
  return { source, clock, paths: () => asked.map(({ path }) => path) };
}

async function changesOf({ source }: Awaited<ReturnType<typeof told>>, since: string) {
  const signal = new AbortController().signal;
  const reading = source.changes?.(since, { fields: ['id', 'nick'], signal });
  if (!reading) throw new Error('it has no changes');
  const records: SourceRecord[] = [];
  let step = await reading.next();
  for (; !step.done; step = await reading.next()) records.push(...step.value);
  const ids = records.map((record) => ('value' in record ? record.value['id'] : record.where));
  return { ids, end: step.value };
}

function cursorOf(end: Certificate | 'lost'): string | undefined {
  if (end === 'lost' || !end.complete) throw new Error('not certified');
  return end.cursor;
}

const since = '2026-01-15T11:00:00Z';

describe('a cursor', () => {
  test('is the beginning of the reading by the clock of the CRM, less the overlap', async () => {
    const { source } = await told({}, at(NOON, people(1, 2)));
    const { certificate } = await readAll(source, ['id']);
    expect(cursorOf(certificate)).toBe('2026-01-15T11:58:00Z');
  });

  test('is that of the first page, from the time of its request', async () => {
    const page = { number: 'p' };
    const { source, clock } = await told(
      { page, changes: { overlap: '1h' } },
      // It takes 30 s to be answered.
      (response: ServerResponse) =>
        void clock.sleep(30_000).then(() => at(NOON, people(1, 1))(response)),
      at(LATER, []),
    );
    expect(cursorOf((await readAll(source, ['id'])).certificate)).toBe('2026-01-15T10:59:30Z');
  });

  test.each<[string, Reply]>([
    ['whose answers tell no time', undated(people(1, 1))],
    ['whose answers tell no time that can be read', at('noon', people(1, 1))],
  ])('is missing for a CRM %s', async (_, reply) => {
    const { source } = await told({}, reply);
    const { certificate } = await readAll(source, ['id']);
    expect(certificate).toMatchObject({ complete: true });
    expect(cursorOf(certificate)).toBeUndefined();
  });

  test('is missing after an uncertified reading, and for an API that lists no changes', async () => {
    const { source } = await told({ total: 'n', records: 'list' }, at(NOON, { list: [], n: 3 }));
    expect((await readAll(source)).certificate).not.toHaveProperty('cursor');
    const { url } = await crm(at(NOON, people(1, 1)));
    const plain = sourceOf(url).source;
    expect((await readAll(plain)).certificate).not.toHaveProperty('cursor');
    expect(plain.changes).toBeUndefined();
  });
});

describe('changes', () => {
  test.each([
    ['iso', '2026-01-15T11%3A00%3A00Z'],
    ['unix', '1768474800'],
    ['unixMs', '1768474800000'],
  ])('are requested in the format %s, and from the last answer on', async (format, written) => {
    const crmTold = await told({ changes: { format } }, at(LATER, people(7, 1)));
    const { ids, end } = await changesOf(crmTold, since);
    expect(ids).toEqual([7]);
    expect(crmTold.paths()).toEqual([`/new?sort=id&since=${written}`]);
    expect(cursorOf(end)).toBe('2026-01-15T12:28:07Z');
    if (end === 'lost') throw new Error('lost');
    expect(crmTold.source.still?.(end.reading)).toBe(true);
  });

  test('come page by page, like the list', async () => {
    const options = { records: 'list', total: 'n', page: { number: 'p' } };
    const crmTold = await told(
      options,
      at(NOON, { list: people(1, 2), n: 3 }),
      at(LATER, { list: people(3, 1), n: 3 }),
      at(LATER, { list: [], n: 3 }),
    );
    const { ids, end } = await changesOf(crmTold, since);
    expect(ids).toEqual([1, 2, 3]);
    expect(crmTold.paths().map((path) => path.replace(/.*&/, ''))).toEqual(['p=1', 'p=2', 'p=3']);
    expect(cursorOf(end)).toBe('2026-01-15T11:58:00Z');
  });

  test('may be none', async () => {
    const options = { records: 'list', total: 'n' };
    const none = await changesOf(await told(options, at(NOON, { list: [], n: 0 })), since);
    expect([none.ids, cursorOf(none.end)]).toEqual([[], '2026-01-15T11:58:00Z']);
  });

  test('come without a cursor on one page: a full reading has shown where they stand', async () => {
    const page = { cursor: 'next', param: 'after' };
    const crmTold = await told({ records: 'list', page }, at(NOON, { list: people(1, 1) }));
    expect((await changesOf(crmTold, since)).end).toMatchObject({ complete: true });
    expect((await readAll(crmTold.source, ['id'])).certificate).toMatchObject({ complete: false });
  });

  test('have no certificate and no cursor when they break off or cannot all be read', async () => {
    const page = { number: 'p' };
    for (const replies of [
      [people(1, 1), status(500)],
      [people(1, 1), status(404)],
      [[{ id: 1 }, 'ann'], []],
    ]) {
      const { end } = await changesOf(await told({ page }, ...replies), since);
      expect(end).toMatchObject({ complete: false });
      expect(end).not.toHaveProperty('cursor');
    }
  });

  test('never go back, and stay where the CRM tells no time', async () => {
    const early = await changesOf(await told({}, at('Thu, 15 Jan 2026 11:01:00 GMT', [])), since);
    expect(cursorOf(early.end)).toBe(since);
    const { end } = await changesOf(await told({}, undated([])), since);
    expect(cursorOf(end)).toBeUndefined();
  });
});

describe('changes are lost', () => {
  test.each<[string, Options, Reply[]]>([
    ['when the CRM says so', {}, [status(410)]],
    ['when it says so later', { page: { number: 'p' } }, [people(1, 1), status(410)]],
    ['when there is no such list', {}, [status(404)]],
    ['when it says nothing', {}, [status(204)]],
    ['when it holds no list', { records: 'list' }, [at(NOON, { list: null })]],
    ['when its clock was put back', {}, [at('Thu, 15 Jan 2026 10:59:59 GMT', [])]],
  ])('%s', async (_, options, replies) => {
    expect((await changesOf(await told(options, ...replies), since)).end).toBe('lost');
  });

  test('with an invalid cursor, without a request', async () => {
    const crmTold = await told({}, people(1, 1));
    expect((await changesOf(crmTold, 'somewhen')).end).toBe('lost');
    expect(crmTold.paths()).toEqual([]);
  });

  test('but not by a refused request, or by an empty list', async () => {
    const refused = await errorOf(changesOf(await told({}, status(400)), since));
    expect(refused.message).toMatch(/refused the request \(400\) → correct changes of the source$/);
    const { source } = await told({}, status(410));
    expect((await errorOf(readAll(source))).name).toBe('Invalid');
  });
});
