import { describe, expect, test } from 'vitest';
import { stage } from '../support/emulator/emulator-stage.ts';

function withAnn() {
  const platform = stage();
  platform.seed.contact({
    id: 'con_ann',
    email: 'ann@example.org',
    channels: { ch_news: 'opt_in' },
  });
  platform.seed.template({ id: 'tpl_1', name: 'Welcome', subject: 'Hi' });
  platform.pass(5000);
  return platform;
}

const later = '2026-11-20T12:00:05.000Z';

describe('acts of people', () => {
  test('unsubscribing, being blocked, bouncing and coming back change the status', () => {
    const platform = withAnn();
    const { dashboard } = platform;
    expect(dashboard.unsubscribe('con_ann')).toMatchObject({ status: 'unsubscribed' });
    expect(platform.ask('GET /api/contacts/list').json).toMatchObject({
      subscribedContacts: 0,
      unsubscribedContacts: 1,
    });
    expect(dashboard.block('con_ann')).toMatchObject({ status: 'blocked' });
    expect(dashboard.suppress('con_ann', 'bounce')).toMatchObject({
      status: 'blocked',
      suppressionReason: 'bounce',
      suppressedAt: later,
      channels: [{ subscription: 'opt_in' }],
    });
    expect(dashboard.resubscribe('con_ann')).toMatchObject({
      status: 'subscribed',
      suppressionReason: null,
      suppressedAt: null,
    });
  });

  test('signing up makes a new contact, or changes the existing one', () => {
    const platform = withAnn();
    platform.dashboard.leave('con_ann', 'ch_news');
    expect(
      platform.dashboard.signUp({ email: 'ANN@example.org', channels: ['ch_news'] }),
    ).toMatchObject({ id: 'con_ann', channels: [{ subscription: 'opt_in' }] });
    expect(platform.dashboard.signUp({ email: 'Bob@example.org', firstName: 'Bob' })).toMatchObject(
      {
        email: 'bob@example.org',
        firstName: 'Bob',
        channels: [],
      },
    );
    expect(platform.world.contacts()).toHaveLength(2);
  });

  test('editing a contact changes the given fields, and it is found by its new email only', () => {
    const platform = withAnn();
    const { dashboard, world } = platform;
    dashboard.unsubscribe('con_ann');
    const before = world.contact('con_ann');
    const edited = dashboard.editContact('ann@example.org', { email: ' Zoe@Example.org ' });
    expect(edited).toEqual({ ...before, email: 'zoe@example.org', updatedAt: later });
    expect(dashboard.editContact('con_ann', { firstName: 'Zoe' })).toEqual({
      ...edited,
      firstName: 'Zoe',
    });
    expect(world.contact('ann@example.org')).toBeUndefined();
    expect(world.contact('zoe@example.org')?.id).toBe('con_ann');
    const found = (query: string) => platform.ask(`GET /api/contacts/list?${query}`).json.total;
    expect([found('search=zoe'), found('search=ann'), found('status=unsubscribed')]).toEqual([
      1, 0, 1,
    ]);
  });

  test('editing an email frees the old one for another contact', () => {
    const platform = withAnn();
    platform.dashboard.editContact('con_ann', { email: 'zoe@example.org' });
    const news = 'POST /api/contacts/channel/ch_news';
    expect(platform.ask(news, { email: 'zoe@example.org' }).status).toBe(409);
    const { contact } = platform.ask(news, { email: 'ann@example.org' }).json;
    expect(contact.id).not.toBe('con_ann');
    expect(platform.world.contacts().map(({ email }) => email)).toEqual([
      'ann@example.org',
      'zoe@example.org',
    ]);
    platform.dashboard.deleteContact('zoe@example.org');
    expect(platform.world.contact('ann@example.org')?.id).toBe(contact.id);
  });

  test('editing an email to one that another contact has, in any case, is refused', () => {
    const { dashboard, seed, world } = withAnn();
    const bob = world.contact(seed.contact({ id: 'con_bob', email: 'Bob@Example.org' }));
    const ann = world.contact('con_ann');
    expect(() =>
      dashboard.editContact('con_ann', { email: 'bob@example.org', firstName: 'Bob' }),
    ).toThrow('contact "con_bob" has the email "Bob@Example.org" already: choose another');
    expect(world.contact('con_ann')).toEqual(ann);
    expect(world.contact('bob@example.org')).toEqual(bob);
    expect(dashboard.editContact('con_bob', { email: 'BOB@example.org' }).email).toBe(
      'bob@example.org',
    );
  });

  test('editing works for each of two emails that differ only in case', () => {
    const { dashboard, seed, world } = withAnn();
    seed.contact({ id: 'con_twin', email: 'ANN@example.org' });
    expect(dashboard.editContact('con_twin', { lastName: 'B' }).email).toBe('ANN@example.org');
    expect(() => dashboard.editContact('con_twin', { email: 'ann@example.org' })).toThrow(
      'contact "con_ann" has the email "ann@example.org" already',
    );
    dashboard.editContact('con_ann', { email: 'zoe@example.org' });
    expect(world.contact('ann@example.org')?.id).toBe('con_twin');
  });

  test('removing a contact from a channel removes the row, and an enrolment makes a new one', () => {
    const platform = withAnn();
    const news = 'POST /api/contacts/channel/ch_news';
    platform.dashboard.signUp({ email: 'ann@example.org', channels: ['ch_product'] });
    expect(platform.dashboard.removeFromChannel('con_ann', 'ch_news')).toMatchObject({
      channels: [{ id: 'ch_product', subscription: 'opt_in' }],
      updatedAt: later,
    });
    expect(() => platform.dashboard.removeFromChannel('con_ann', 'ch_news')).toThrow(
      'contact "con_ann" is not in channel "ch_news"',
    );
    expect(platform.ask(news, { contact_id: 'con_ann' }).status).toBe(201);
  });

  test('an act on something that does not exist names it', () => {
    const { dashboard, seed } = withAnn();
    expect(() => dashboard.editContact('nobody', {})).toThrow('no contact "nobody"');
    expect(() => dashboard.removeFromChannel('con_ann', 'ch_x')).toThrow('no channel "ch_x"');
    expect(() => dashboard.block('nobody')).toThrow('no contact "nobody"');
    expect(() => dashboard.leave('con_ann', 'ch_x')).toThrow(
      'no channel "ch_x": use one of ch_news, ch_product',
    );
    expect(() => dashboard.editTemplate('x', {})).toThrow('no template "x"');
    expect(() => seed.contact({ email: 'a@b.c', channels: { ch_x: 'opt_in' } })).toThrow('ch_x');
  });
});

describe('seeds', () => {
  test('keep an email as given, and find it in any case', () => {
    const platform = stage();
    platform.seed.contact({ id: 'one', email: 'Ann@Example.org' });
    platform.seed.contact({ id: 'two', email: 'ann@example.org' });
    const news = 'POST /api/contacts/channel/ch_news';
    const enrolled = () => platform.ask(news, { email: 'ANN@example.org' }).json.contact;
    expect(enrolled()).toMatchObject({ id: 'one', email: 'Ann@Example.org' });
    platform.dashboard.deleteContact('one');
    expect(enrolled()).toMatchObject({ id: 'two' });
    platform.dashboard.deleteContact('two');
    expect(enrolled().id).toMatch(/^con_/);
  });

  test('refuse an id that is taken', () => {
    const { seed } = withAnn();
    expect(() => seed.contact({ id: 'con_ann', email: 'x@y.z' })).toThrow('"con_ann" exists');
    expect(() => seed.template({ id: 'tpl_1', name: 'x' })).toThrow('"tpl_1" exists');
    expect(() => seed.channel({ id: 'ch_news', name: 'x' })).toThrow('"ch_news" exists');
  });

  test('make a suppressed contact suppressed from its creation', () => {
    const platform = stage();
    platform.seed.contact({ id: 'a', email: 'a@b.c', suppressionReason: 'bounce', createdAt: 0 });
    expect(platform.world.contact('a')).toMatchObject({
      suppressionReason: 'bounce',
      suppressedAt: '1970-01-01T00:00:00.000Z',
    });
  });

  test('give the same ids and API key for the same random numbers', () => {
    const story = () => {
      const platform = stage({ apiKey: undefined });
      platform.seed.contact({ email: 'a@b.c', channels: { ch_news: 'opt_in' } });
      return [platform.apiKey, platform.organizationId, platform.world.contacts()];
    };
    expect(story()).toEqual(story());
  });

  test('give different ids even when the random numbers are all the same', () => {
    const platform = stage({ random: () => 0 });
    for (let index = 0; index < 100; index += 1) platform.seed.contact({ email: `${index}@b.c` });
    expect(new Set(platform.world.contacts().map(({ id }) => id)).size).toBe(100);
  });
});

describe('the request log', () => {
  test('shows who did what to which contact, and the outcome', () => {
    const platform = withAnn();
    const news = 'POST /api/contacts/channel/ch_news';
    platform.ask(news, { contact_id: 'con_ann' });
    platform.ask(news, { email: 'Bob@example.org', subscription: 'opt_out' });
    platform.ask('POST /api/contacts/channel/none', { email: 'bob@example.org' });
    platform.ask('DELETE /api/contacts/con_ann');
    platform.ask('PUT /api/template/v1/tpl_1', { name: 'New' });
    platform.ask('GET /api/contacts/list?page=2', undefined, { 'x-api-key': 'no' });
    platform.ask('GET /nowhere');
    const ann = { contactId: 'con_ann', email: 'ann@example.org' };
    const enrol = { at: later, method: 'POST', route: 'contacts.enrol' };
    const channel = { path: '/api/contacts/channel/ch_news', channelId: 'ch_news' };
    expect(platform.world.requests()).toEqual([
      { ...enrol, ...channel, ...ann, subscription: 'opt_in', status: 409 },
      {
        ...enrol,
        ...channel,
        contactId: platform.world.contact('bob@example.org')?.id,
        email: 'bob@example.org',
        subscription: 'opt_out',
        status: 201,
        created: true,
      },
      {
        ...enrol,
        path: '/api/contacts/channel/none',
        channelId: 'none',
        email: 'bob@example.org',
        subscription: 'opt_in',
        status: 404,
      },
      {
        at: later,
        method: 'DELETE',
        path: '/api/contacts/con_ann',
        route: 'contacts.delete',
        status: 200,
        ...ann,
      },
      {
        at: later,
        method: 'PUT',
        path: '/api/template/v1/tpl_1',
        route: 'templates.update',
        status: 200,
        templateId: 'tpl_1',
      },
      {
        at: later,
        method: 'GET',
        path: '/api/contacts/list?page=2',
        route: 'contacts.list',
        status: 401,
      },
      { at: later, method: 'GET', path: '/nowhere', route: null, status: 404 },
    ]);
  });

  test('drops the oldest entries', () => {
    const platform = stage({ keepRequests: 10 });
    for (let index = 0; index < 95; index += 1) platform.ask(`GET /${index}`);
    const paths = platform.world.requests().map(({ path }) => path);
    expect(paths.at(-1)).toBe('/94');
    expect(paths.length).toBeGreaterThanOrEqual(10);
    expect(paths.length).toBeLessThanOrEqual(20);
  });
});

describe('the console under /_emulator/', () => {
  test('needs no key, counts for no limit, and is not logged', () => {
    const platform = stage({ limits: ['*=1/60'] });
    for (let index = 0; index < 5; index += 1) {
      const answer = platform.handle({ method: 'GET', path: '/_emulator/state', headers: {} });
      expect(answer.status).toBe(200);
    }
    expect(platform.world.requests()).toEqual([]);
  });

  test('shows the world, and of each type as much as requested', () => {
    const platform = withAnn();
    platform.seed.contact({ email: 'bob@example.org', status: 'blocked' });
    platform.ask('POST /api/template/v1/tpl_1/test', { to: 'x' });
    const { json } = platform.ask('GET /_emulator/state?count=1');
    expect(json).toMatchObject({
      organizationId: platform.organizationId,
      channels: [{ id: 'ch_news' }, { id: 'ch_product' }],
      totals: { contacts: 2, subscribed: 1, unsubscribed: 0, blocked: 1, templates: 1 },
      contacts: [{ email: 'bob@example.org' }],
      templates: [{ id: 'tpl_1' }],
      outbox: [{ to: 'x' }],
      requests: [{ route: 'templates.test', status: 200 }],
    });
    expect(platform.ask('GET /_emulator/state?count=0').json.requests).toEqual([]);
    expect(platform.ask('GET /_emulator/state?count=-1').status).toBe(400);
  });

  test.each([
    [
      'leave',
      { contact: 'con_ann', channel: 'ch_news' },
      { channels: [{ subscription: 'opt_out' }] },
    ],
    ['unsubscribe', { contact: 'ann@example.org' }, { status: 'unsubscribed' }],
    ['block', { contact: 'con_ann' }, { status: 'blocked' }],
    ['resubscribe', { contact: 'con_ann' }, { status: 'subscribed' }],
    ['suppress', { contact: 'con_ann', reason: 'bounce' }, { suppressionReason: 'bounce' }],
    ['delete', { contact: 'con_ann' }, { id: 'con_ann' }],
    ['sign-up', { email: 'bob@example.org', channels: ['ch_news'] }, { email: 'bob@example.org' }],
    ['edit-template', { template: 'tpl_1', fields: { subject: 'New' } }, { subject: 'New' }],
  ])('acts for a person: %s', (act, body, expected) => {
    const { status, json } = withAnn().ask(`POST /_emulator/${act}`, body);
    expect(status).toBe(200);
    expect(json).toMatchObject(expected);
  });

  test.each([
    ['POST /_emulator/leave', { contact: 'nobody', channel: 'ch_news' }, 404],
    ['POST /_emulator/leave', { contact: 'con_ann', channel: 'ch_x' }, 404],
    ['POST /_emulator/leave', { contact: 'con_ann' }, 400],
    ['POST /_emulator/leave', '{', 400],
    ['POST /_emulator/block', { contact: 'con_ann', chanel: 'x' }, 400],
    ['POST /_emulator/sign-up', { email: 'nope' }, 400],
    ['POST /_emulator/edit-contact', { contact: 'con_ann', email: 'nope' }, 400],
    ['POST /_emulator/edit-contact', { contact: 'nobody' }, 404],
    ['POST /_emulator/remove-from-channel', { contact: 'con_ann', channel: 'ch_product' }, 404],
    ['GET /_emulator/leave', undefined, 404],
    ['POST /_emulator/state', {}, 404],
    ['POST /_emulator/dance', {}, 404],
  ])('%s %j: %i', (line, body, expected) => {
    const { status, json } = withAnn().ask(line, body);
    expect(status).toBe(expected);
    expect(Object.keys(json)).toEqual(['message', 'why', 'fix', 'link']);
  });
});
