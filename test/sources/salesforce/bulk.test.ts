/** An organization of many, read by the Bulk API: a job, and its results in chunks of CSV. */
import { describe, expect, test } from 'vitest';
import { errorOf, readAll } from '../../support/sources/source-reading.ts';
import {
  createOrg,
  onNet,
  refused,
  type Org,
  type Reply,
  contact,
  contactId,
  cursorIn,
  fields,
  readFrom,
  sourceOf,
} from '../../support/sources/salesforce-org.ts';

const many = { bulkAbove: 3 };
const asked = ['Id', 'Email', 'HasOptedOutOfEmail', 'IsDeleted', 'Account.Name', 'Score__c'];

function orgOf(count: number): Org {
  const org = createOrg({
    Contact: Array.from({ length: count }, (_, at) => contact(at + 1, { Score__c: null })),
  });
  org.fields.Contact = ['Score__c:double'];
  org.job.chunk = 2;
  return org;
}

const jobsIn = (org: Org) => org.asked.filter(({ path }) => path.includes('/jobs/'));

describe('the Bulk API', () => {
  test('gives the same records as the pages', async () => {
    const org = orgOf(5);
    Object.assign(org.records.Contact[0]!, {
      Account: { Name: 'Acme, "the" best\nof all' },
      Score__c: 4.5,
      HasOptedOutOfEmail: true,
    });
    Object.assign(org.records.Contact[1]!, { IsDeleted: true, MasterRecordId: contactId(1) });
    const { source, clock, values, certificate } = await readFrom(org, many, asked);
    expect(values[0]).toEqual({
      attributes: { type: 'Contact' },
      Id: contactId(1),
      Email: 'c1@example.com',
      HasOptedOutOfEmail: true,
      IsDeleted: false,
      'Account.Name': 'Acme, "the" best\nof all',
      Score__c: 4.5,
    });
    expect((await readAll(sourceOf().source, asked)).values).toEqual(values);
    expect(cursorIn(certificate)).toMatch(/^2026-01-15T11:58:00Z/);
    expect(source.still(certificate.reading)).toBe(true);
    expect(clock.slept).toEqual([1_000, 2_000]);
  });

  test('starts a job without an order, and reads its results to the last', async () => {
    const org = orgOf(5);
    await readFrom(org, { ...many, where: "LastName != 'Hidden'" });
    const [made, , , ...results] = jobsIn(org);
    expect(made).toMatchObject({ method: 'POST', path: '/services/data/v62.0/jobs/query' });
    expect(JSON.parse(made?.body ?? '')).toMatchObject({
      operation: 'queryAll',
      query:
        "SELECT Id, IsDeleted, MasterRecordId, Email, HasOptedOutOfEmail FROM Contact WHERE (LastName != 'Hidden')",
    });
    expect(results.map(({ path }) => path.replace(/.*results/, ''))).toEqual([
      '?maxRecords=5000',
      '?maxRecords=5000&locator=2',
      '?maxRecords=5000&locator=4',
    ]);
    expect(results.map(({ headers }) => headers['accept'])).toEqual(Array(3).fill('text/csv'));
  });

  test('is not used for few records', async () => {
    const org = orgOf(3);
    const { values } = await readFrom(org, many);
    expect(values).toHaveLength(3);
    expect(jobsIn(org)).toEqual([]);
  });

  test('may have a header row in the first chunk only', async () => {
    const org = orgOf(5);
    org.instead = (question) => {
      if (!question.path.includes('&locator=')) return undefined;
      org.instead = () => undefined;
      const { body, ...rest } = org.answer(question);
      org.instead = headless;
      return { ...rest, body: String(body).replace(/^.*\n/, '') };
    };
    const headless = org.instead;
    const { values, certificate } = await readFrom(org, many);
    expect(values).toHaveLength(5);
    expect(certificate.complete).toBe(true);
  });

  test('is not believed when it counts more than it gives', async () => {
    const org = orgOf(5);
    const done = { id: '750R0000000zlh9IAA', state: 'JobComplete', numberRecordsProcessed: 6 };
    org.instead = ({ path, method }) =>
      method === 'GET' && /\/jobs\/query\/\w+$/.test(path)
        ? { status: 200, body: done }
        : undefined;
    const { certificate } = await readFrom(org, many);
    expect(certificate).toMatchObject({
      complete: false,
      why: '5 different Contacts were read, and Salesforce counts 6',
    });
  });

  const chunk = (body: string, count: number): Reply => ({
    status: 200,
    body,
    headers: { 'content-type': 'text/csv', 'sforce-numberofrecords': String(count) },
  });
  test.each<[string, Reply]>([
    ['cut', chunk('"Id","Email"\n"003', 2)],
    ['of another count', chunk('Id,IsDeleted,MasterRecordId,Email,HasOptedOutOfEmail\n', 2)],
    ['without its columns', chunk('"Id","Email"\n"a","b"\n', 1)],
    ['of JSON', { status: 200, body: { records: [] } }],
  ])('refuses results %s', async (_, reply) => {
    const org = orgOf(5);
    org.instead = ({ path }) => (path.includes('/results') ? reply : undefined);
    onNet(org);
    const error = await errorOf(readAll(sourceOf(many).source, fields));
    expect(error.name).toBe('Unavailable');
    expect(error.message).toMatch(
      /answered results of the Bulk API that are none → read it again$/,
    );
  });

  test('keeps results that break off, uncertified', async () => {
    const org = orgOf(5);
    org.instead = ({ path }) =>
      path.endsWith('locator=4') ? refused(400, 'UNKNOWN_EXCEPTION') : undefined;
    const { values, certificate } = await readFrom(org, many);
    expect(values).toHaveLength(4);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringContaining('refused the request (400 UNKNOWN_EXCEPTION)'),
    });
  });

  test.each(['Failed', 'Aborted'])(
    'says what else can be done when a job ends as %s',
    async (state) => {
      const org = orgOf(5);
      org.job.state = state;
      onNet(org);
      const error = await errorOf(readAll(sourceOf(many).source, fields));
      expect(error.message).toMatch(`the job of the Bulk API ended as ${state} → set bulkAbove`);
    },
  );

  test('gives a job up after four hours', async () => {
    const org = orgOf(5);
    org.job.polls = Infinity;
    onNet(org);
    const { source, clock } = sourceOf(many);
    const error = await errorOf(readAll(source, fields));
    expect(error.message).toMatch('was not done after 4 hours → set bulkAbove');
    expect(clock.slept.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(4.1 * 3_600_000);
  });
});
