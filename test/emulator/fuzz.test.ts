import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultKinds } from '../../src/emulator/faults/faults.ts';
import { quirks } from '../../src/emulator/quirks/quirks.ts';
import { KEY, stage } from '../support/emulator/emulator-stage.ts';
import { extent } from '../support/extent.ts';

const word = fc.oneof(
  fc.string(),
  fc.constantFrom('con_1', 'tpl_1', 'ch_news', 'list', 'test', '%zz', '__proto__', '{id}', ''),
);
const path = fc.oneof(
  fc.string().map((text) => `/${text}`),
  fc
    .tuple(
      fc.constantFrom(
        '/api/contacts/list',
        '/api/contacts/retrieve/',
        '/api/contacts/',
        '/api/contacts/channel/ch_news',
        '/api/contacts/channel/',
        '/api/template/v1/list',
        '/api/template/v1/create',
        '/api/template/v1/tpl_1',
        '/api/template/v1/tpl_1/test',
        '/api/domain/v1/create',
        '/api/domain/v1/list',
        '/api/domain/v1/verify/dom_1',
        '/api/domain/v1/verify/',
        '/api/domain/v1/nameservers/dom_1',
        '/api/api-key/v1/enable/key_1',
        '/openapi.json/',
        '/_emulator/reset',
        '/_emulator/settle-domain',
        '/_emulator/disable-key',
        '/_emulator/state',
        '/_emulator/leave',
        '/_emulator/sign-up',
        '/_emulator/edit-contact',
        '/_emulator/remove-from-channel',
        '/_emulator/edit-template',
      ),
      fc.oneof(fc.constant(''), word),
    )
    .map((parts) => parts.join('')),
);
const search = fc
  .array(fc.tuple(fc.constantFrom('page', 'limit', 'search', 'status', 'count', '__proto__'), word))
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));
const field = fc.constantFrom(
  ...'contact_id email subscription name subject content variables status'.split(' '),
  ...'domain custom_return_path tracking tls click_tracking key status reason id'.split(' '),
  ...'to html contact channel template fields __proto__ toString'.split(' '),
);
const value = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    'a@b.c',
    'Z@b.c',
    'opt_out',
    'con_1',
    'ch_news',
    'tpl_1',
    'dom_1',
    'key_1',
    'a.example',
    'x'.repeat(300),
  ),
);
const body = fc.oneof(
  fc.string(),
  fc.json(),
  fc
    .array(fc.tuple(field, value))
    .map((pairs) => `{${pairs.map((pair) => pair.map((one) => JSON.stringify(one)).join(':'))}}`),
);
const request = fc.record({
  method: fc.oneof(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'), fc.string()),
  path: fc.tuple(path, search).map(([before, after]) => (after ? `${before}?${after}` : before)),
  headers: fc.oneof(
    fc.constant({ 'x-api-key': KEY }),
    fc.constantFrom('s_1', 's_2', 's_3').map((value) => ({ cookie: `a.session_token=${value}` })),
    fc.string().map((cookie) => ({ cookie, 'x-api-key': KEY })),
    fc.dictionary(fc.string(), fc.string()),
    fc.string().map((key) => ({ 'x-api-key': key })),
  ),
  body,
});

const variants = quirks.flatMap(({ name, values }) =>
  values ? values.map((one) => `${name}=${one}`) : [name],
);

test('any request is answered under any quirks, and on a connection with any faults', () => {
  const chosen = fc.uniqueArray(fc.constantFrom(...variants), {
    selector: (variant) => variant.split('=')[0],
  });
  fc.assert(
    fc.property(chosen, fc.array(request, { minLength: 1, maxLength: 10 }), (played, requests) => {
      const faults = faultKinds.map(({ name }) => `${name}=0.05`);
      const platform = stage({ quirks: played, faults, limits: ['*=5/1'] });
      platform.seed.contact({ id: 'con_1', email: 'A@b.c', channels: { ch_news: 'opt_in' } });
      platform.seed.template({ id: 'tpl_1', name: 'One', subject: '{{name}}' });
      platform.seed.domain({ id: 'dom_1', domain: 'one.example' });
      platform.seed.user({ name: 'Ann', email: 'ann@one.example', session: 's_1' });
      for (const one of requests) {
        const delivery = platform.receive(one);
        if (delivery.is === 'reset' || delivery.is === 'silence') continue;
        const { status, headers, body: text } = delivery.answer;
        expect([200, 201, 400, 401, 403, 404, 405, 409, 422, 429, 500]).toContain(status);
        if (headers['content-type']?.startsWith('text/html')) continue;
        const json = JSON.parse(text);
        if (status >= 400) expect(json.message).toEqual(expect.any(String));
      }
    }),
    { numRuns: extent(100, 1000) },
  );
});
