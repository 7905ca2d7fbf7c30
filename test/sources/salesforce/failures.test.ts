/** Failures of Salesforce: each is waited out, tried again, or reported in one line. */
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import { errorOf, readAll } from '../../support/sources/source-reading.ts';
import {
  createOrg,
  onNet,
  refused,
  type Asked,
  type Org,
  type Reply,
  changesOf,
  contact,
  cursorIn,
  fields,
  lead,
  readFrom,
  sourceOf,
} from '../../support/sources/salesforce-org.ts';

const people = [1, 2, 3, 4, 5].map((n) => contact(n));
const isQuery = ({ path }: Asked) => path.includes('/queryAll');

/** The nth answer to such a question is another one; 0: every one of them. */
function failing(org: Org, reply: Reply, { at = 0, when = isQuery } = {}): Org {
  let count = 0;
  org.instead = (asked) => {
    if (!when(asked)) return undefined;
    count += 1;
    return at === 0 || at === count ? reply : undefined;
  };
  return org;
}

describe('a permanent failure', () => {
  const noPage = 'Unavailable: crm answered a page that is none → read it again';
  const noField = (name: string) =>
    `Invalid: crm has no such field: "${name}", or its user may not see it → correct the fields of the configuration or where of the source, or let the user see it`;
  const answer = (body: object): Reply => ({ status: 200, body });
  const usage = { 'sforce-limit-info': 'api-usage=15000/15000' };
  test.each<[string, Reply, string]>([
    [
      'the limit of a day',
      {
        ...refused(403, 'REQUEST_LIMIT_EXCEEDED', 'TotalRequests Limit exceeded.'),
        headers: usage,
      },
      'RateLimited: crm has used up its API requests of 24 hours (15000 of 15000) → run less often, or have them raised',
    ],
    [
      'too much at once',
      refused(403, 'REQUEST_LIMIT_EXCEEDED', 'ConcurrentPerOrgLongTxn Limit exceeded.'),
      'Unavailable: crm has too many long requests at once → try again later',
    ],
    [
      'a field that is not there',
      refused(
        400,
        'INVALID_FIELD',
        "\nSELECT Id, Owner.Foo__c FROM Contact\n ^\nERROR at Row:1:Column:12\nNo such column 'Foo__c' on entity 'Name'. ann@example.com",
      ),
      noField('Foo__c'),
    ],
    [
      'a path that is none',
      refused(400, 'INVALID_FIELD', "Didn't understand relationship 'Boss' in field path."),
      noField('Boss'),
    ],
    [
      'a condition that is none',
      refused(400, 'MALFORMED_QUERY', "unexpected token: 'ann@example.com'"),
      'Invalid: crm does not understand the query → correct where of the source',
    ],
    [
      'an object that may not be read',
      refused(400, 'INVALID_TYPE', "sObject type 'Contact' is not supported."),
      'Invalid: crm does not show an object that is to be read → correct objects of the source, or give its user the right to read them',
    ],
    [
      'an edition without API',
      refused(403, 'API_DISABLED_FOR_ORG', 'The REST API is not enabled'),
      'Invalid: crm has no API in its edition → have it enabled for the organization',
    ],
    [
      'a query that takes too long',
      refused(400, 'QUERY_TIMEOUT', 'Your query request was running for too long.'),
      'Unavailable: crm took too long for the query → narrow where of the source, to fields that are indexed',
    ],
    [
      'what nobody has heard of',
      refused(400, 'SOMETHING_NEW', 'ann@example.com'),
      'Invalid: crm refused the request (400 SOMETHING_NEW) → correct where of the source, and the fields of the configuration',
    ],
    [
      'a refusal without words',
      { status: 403, body: 'ann@example.com' },
      'Invalid: crm refused the request (403) → correct auth of the source, or the rights of its user',
    ],
    [
      '500',
      { status: 500, body: 'ann@example.com' },
      'Unavailable: crm answered 500, after 4 attempts',
    ],
    ['a page that is none', answer({ records: [{ Email: 'ann@example.com' }] }), noPage],
    ['a page that lacks the next one', answer({ totalSize: 9, done: false, records: [] }), noPage],
    [
      'a next page elsewhere',
      answer({ totalSize: 9, done: false, records: [], nextRecordsUrl: 'https://evil.example' }),
      noPage,
    ],
    [
      'a record without an id',
      answer({ totalSize: 1, done: true, records: [{ Email: 'ann@example.com' }] }),
      'Unavailable: Salesforce answered a record without its Id',
    ],
  ])('%s', async (_, reply, line) => {
    onNet(failing(createOrg({ Contact: people }), reply));
    const error = await errorOf(readAll(sourceOf().source, fields));
    expect(String(error).replace('acme.my.salesforce.com', 'crm')).toBe(line);
  });

  test('is a version that does not exist', async () => {
    onNet(createOrg());
    const error = await errorOf(readAll(sourceOf({ version: 'v99.0' }).source, fields));
    expect(error.message).toMatch(/has no such thing → correct version and objects of the source/);
  });
});

describe('a failure in the middle', () => {
  test.each<[Reply, string, string]>([
    [
      refused(400, 'INVALID_QUERY_LOCATOR', 'invalid query locator'),
      'reading stopped among the Contacts: acme.my.salesforce.com has closed the list in the middle of it',
      'read it again',
    ],
    [
      refused(403, 'REQUEST_LIMIT_EXCEEDED', 'TotalRequests Limit exceeded.'),
      'reading stopped among the Contacts: acme.my.salesforce.com has used up its API requests of 24 hours',
      'run less often, or have them raised',
    ],
    [
      { status: 500 },
      'reading stopped among the Contacts: acme.my.salesforce.com answered 500, after 4 attempts',
      'read it again',
    ],
  ])('of %o keeps what was read, uncertified', async (reply, why, fix) => {
    const org = createOrg({ Contact: people });
    org.pageSize = 2;
    failing(org, reply, { when: ({ path }) => path.endsWith('-4') });
    const { values, certificate } = await readFrom(org);
    expect(values).toHaveLength(4);
    expect(certificate).toMatchObject({ complete: false, why, fix });
    expect(certificate).not.toHaveProperty('cursor');
  });

  test('is handled among leads, and among changes, too', async () => {
    const org = createOrg({ Contact: people, Lead: [lead(1)] });
    const { source, certificate } = await readFrom(org, { objects: ['Contact', 'Lead'] });
    const cursor = cursorIn(certificate);
    failing(org, { status: 500 }, { when: (asked) => /FROM(%20|\+)Lead/.test(asked.path) });
    const again = await readAll(source, fields);
    expect(again.values).toHaveLength(5);
    expect(again.certificate).toMatchObject({
      complete: false,
      why: expect.stringContaining('among the Leads'),
    });
    for (const one of org.records.Contact) one['SystemModstamp'] = '2026-01-15T12:30:00.000+0000';
    const { values, certificate: next } = await changesOf(source, cursor);
    expect(values).toHaveLength(5);
    expect(next).toMatchObject({
      complete: false,
      why: expect.stringContaining('answered 500'),
    });
  });

  test('includes pages that go round in a circle', async () => {
    const org = createOrg({ Contact: people });
    org.pageSize = 2;
    const records = people.slice(0, 2).map((one) => ({ attributes: { type: 'Contact' }, ...one }));
    const nextRecordsUrl = '/services/data/v62.0/query/01g0-2';
    const body = { totalSize: 5, done: false, nextRecordsUrl, records };
    failing(org, { status: 200, body }, { when: ({ path }) => path.endsWith('-2') });
    const { certificate } = await readFrom(org);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringContaining('lists more than it counts'),
    });
  });

  test('includes the process, which ends as told', async () => {
    const stop = new AbortController();
    const org = createOrg({ Contact: people });
    org.pageSize = 2;
    org.instead = ({ path }) => {
      if (path.endsWith('-2')) stop.abort(new Interrupted('SIGTERM'));
      return undefined;
    };
    onNet(org);
    const error = await errorOf(readAll(sourceOf().source, fields, stop.signal));
    expect(error.name).toBe('Interrupted');
    expect(org.asked.some(({ path }) => path.endsWith('-4'))).toBe(false);
  });
});
