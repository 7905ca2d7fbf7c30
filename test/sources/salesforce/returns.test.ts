/** Who left, told to Salesforce on the contact or lead itself. */
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import {
  salesforceOptions,
  salesforceReturnsOptions,
} from '../../../src/sources/salesforce/options.ts';
import { salesforceReturns } from '../../../src/sources/salesforce/salesforce-source.ts';
import {
  allMail,
  left,
  tell,
  errorOf,
  virtualClock,
} from '../../support/sources/source-reading.ts';
import { onlyNocked } from '../../support/sources/nock-server.ts';
import { ORIGIN, auth, contactId, leadId } from '../../support/sources/salesforce-org.ts';

const base = '/services/data/v62.0/sobjects';
const token = { access_token: 'tok_1', instance_url: ORIGIN };

onlyNocked();

const org = (access = 'tok_1') =>
  nock(ORIGIN, { reqheaders: { authorization: `Bearer ${access}` } });
const grants = (given: object = token) =>
  nock(ORIGIN).post('/services/oauth2/token').reply(200, given);
const refused = (errorCode: string) => [{ errorCode, message: `about a@x.y: ${errorCode}` }];

function returns(fields?: Record<string, string>) {
  const source = salesforceOptions.parse({ type: 'salesforce', url: ORIGIN, auth });
  const wanted = salesforceReturnsOptions.parse({ type: 'salesforce', fields });
  return salesforceReturns(source, wanted, { clock: virtualClock(), random: () => 1 });
}

const ann = left('a', { crmId: contactId(1) });
const path = `${base}/Contact/${contactId(1)}`;

describe('write-back to Salesforce', () => {
  test('reports all mail on the contact or lead', async () => {
    grants();
    org().patch(path, { HasOptedOutOfEmail: true }).reply(204);
    org()
      .patch(`${base}/Lead/${leadId(2)}`, { HasOptedOutOfEmail: true })
      .reply(204);
    const bob = left('b', { crmId: leadId(2), ...allMail });
    expect(await tell(returns(), { ...ann, ...allMail }, bob)).toEqual([
      { is: 'told' },
      { is: 'told' },
    ]);
  });

  test('clears the checkbox that is configured for a channel', async () => {
    grants();
    org().patch(path, { Newsletter__c: false }).reply(204);
    expect(await tell(returns({ ch_news: 'Newsletter__c' }), ann)).toEqual([{ is: 'told' }]);
  });

  test('accepts all mail and named channels, of contacts and leads', () => {
    const back = returns({ ch_news: 'Newsletter__c' });
    const takes = (crmId: string, channel: string) => back.takes({ crmId, channel });
    expect(takes(contactId(1), '*')).toBe(true);
    expect(takes(leadId(1).slice(0, 15), 'ch_news')).toBe(true);
    expect(takes(contactId(1), 'ch_product')).toBe(false);
    expect(takes('0015g00000AAAAAAAA', '*')).toBe(false);
    expect(takes('', '*')).toBe(false);
  });

  test('counts a deleted record as nobody to report', async () => {
    grants();
    org().patch(path).reply(404, refused('ENTITY_IS_DELETED'));
    expect(await tell(returns(), { ...ann, ...allMail })).toEqual([{ is: 'told' }]);
  });

  test.each([
    [404, 'NOT_FOUND', 'does not have this record (404)'],
    [400, 'FIELD_CUSTOM_VALIDATION_EXCEPTION', 'refused it (400 FIELD_CUSTOM'],
    [400, 'INSUFFICIENT_ACCESS_OR_READONLY', 'refused it (400 INSUFFICIENT'],
  ])('rejects this opt-out with %i %s, and no other', async (status, code, words) => {
    grants();
    org().patch(path).reply(status, refused(code)).patch(path).reply(204);
    const told = await tell(returns(), { ...ann, ...allMail }, { ...ann, ...allMail });
    expect(told).toEqual([
      { is: 'rejected', reason: expect.stringContaining(words), fix: expect.any(String) },
      { is: 'told' },
    ]);
  });

  test.each([
    [400, 'INVALID_FIELD', 'Invalid'],
    [403, 'REQUEST_LIMIT_EXCEEDED', 'RateLimited'],
    [400, 'UNABLE_TO_LOCK_ROW', 'Unavailable'],
  ])('rejects all with %i %s: nothing else is reported', async (status, code, name) => {
    grants();
    org().patch(path).reply(status, refused(code));
    const back = returns();
    const error = await errorOf(tell(back, { ...ann, ...allMail }, { ...ann, ...allMail }));
    expect(error.name).toBe(name);
    expect(error.message).not.toMatch(/x\.y|tok_1|sk_secret/);
  });

  test('logs in again when the token has expired', async () => {
    grants();
    org().patch(path).reply(401, refused('INVALID_SESSION_ID'));
    grants({ ...token, access_token: 'tok_2' });
    org('tok_2').patch(path).reply(204);
    expect(await tell(returns(), { ...ann, ...allMail })).toEqual([{ is: 'told' }]);
  });
});
