/** A Salesforce organization, mirrored by the command line: first load, opt-outs, a merge. */
import { describe, expect, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import {
  createOrg,
  type Org,
  contact,
  contactId,
  lead,
} from '../support/sources/salesforce-org.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

/** The organization on a server of this machine. */
async function serveOrg(org: Org): Promise<string> {
  org.origin = await serve(({ method = '', url: path = '', headers, text }, response) => {
    const { status, body, headers: told } = org.answer({ method, path, headers, body: text });
    response.writeHead(status, told).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return org.origin;
}

async function mirroredOrg(org: Org, extra: object = {}, subscription: unknown = 'Newsletter__c') {
  const url = await serveOrg(org);
  const auth = { clientId: '3MVG9.id', clientSecret: '${SF_SECRET}' };
  const lines = {
    contacts: {
      source: { type: 'salesforce', url, auth, objects: ['Contact', 'Lead'], ...extra },
      id: 'Id',
      email: 'Email',
      deleted: 'IsDeleted',
      unsubscribed: 'HasOptedOutOfEmail',
      channels: [{ id: 'ch_news', subscription }],
      webhook: { format: 'standard', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    },
  };
  const hides = ['sk_secret', '00Dx', '@example'];
  const { call, ...world } = await mirrored({ lines, env: { SF_SECRET: 'sk_secret' }, hides });
  return { world, call };
}

const wants = { Newsletter__c: true };
const email = (n: number) => `c${n}@example.com`;

function orgOf(): Org {
  const org = createOrg({
    Contact: [1, 2, 3].map((n) => contact(n, wants)),
    Lead: [lead(1, wants)],
  });
  org.fields = { Contact: ['Newsletter__c:boolean'], Lead: ['Newsletter__c:boolean'] };
  org.pageSize = 2;
  return org;
}

describe('a Salesforce organization', () => {
  test('is mirrored, repeatedly', async () => {
    const org = orgOf();
    const { world, call } = await mirroredOrg(org);
    const checked = await call('check');
    expect(checked.said).toContain(
      '4 records, 0 of them invalid, and one of them was read by its id',
    );
    expect((await call('sync')).code).toBe(0);
    for (const address of [email(1), email(2), email(3), 'l1@example.com']) {
      expect(world.shown(address)).toMatchObject({ ch_news: 'opt_in' });
    }
    world.writes();
    expect((await call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);

    Object.assign(org.records.Contact[0]!, { HasOptedOutOfEmail: true });
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(email(1))).toMatchObject({ ch_news: 'opt_out' });
  });

  test('carries the opt-out of a merged contact over to the remaining one', async () => {
    const org = orgOf();
    const { world, call } = await mirroredOrg(org);
    await call('sync');
    Object.assign(org.records.Contact[1]!, {
      HasOptedOutOfEmail: true,
      IsDeleted: true,
      MasterRecordId: contactId(1),
    });
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(email(1))).toMatchObject({ ch_news: 'opt_out' });
    expect(world.shown(email(3))).toMatchObject({ ch_news: 'opt_in' });
  });

  test("carries the opt-out of a merged contact from one channel over, by the channel's own words", async () => {
    const org = orgOf();
    org.fields = { Contact: ['Objection__c'], Lead: ['Objection__c'] };
    for (const record of [...org.records.Contact, ...org.records.Lead])
      Object.assign(record, { Objection__c: 'nie' });
    const words = { optOut: 'Objection__c', yes: ['ja'], no: ['nie'], else: 'in' };
    const { world, call } = await mirroredOrg(org, {}, words);
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(email(1))).toMatchObject({ ch_news: 'opt_in' });
    Object.assign(org.records.Contact[1]!, {
      Objection__c: 'ja',
      IsDeleted: true,
      MasterRecordId: contactId(1),
    });
    await call('sync');
    expect(world.shown(email(1))).toMatchObject({ ch_news: 'opt_out' });
  });
});
