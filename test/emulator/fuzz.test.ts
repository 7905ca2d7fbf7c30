/** The requests of test/fuzz/emulator.ts, under quirks and on a connection with faults. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultKinds } from '../../src/emulator/faults/faults.ts';
import { quirks } from '../../src/emulator/quirks/quirks.ts';
import { mutated, scrap, twisted } from '../fuzz/area.ts';
import { requests } from '../fuzz/emulator.ts';
import { KEY, stage } from '../support/emulator/emulator-stage.ts';
import { extent } from '../support/extent.ts';

const line = fc.constantFrom(...requests).chain(([known, body]) =>
  fc.record({
    line: fc.oneof(fc.constant(known), mutated([known])),
    body: fc.oneof(fc.constant(body), twisted([body]), scrap),
  }),
);

const headers = fc.oneof(
  fc.constant({ 'x-api-key': KEY }),
  fc.constantFrom('s_1', 's_2').map((value) => ({ cookie: `a.session_token=${value}` })),
  fc.dictionary(fc.string(), fc.string()),
);

const variants = quirks.flatMap(({ name, values }) =>
  values ? values.map((one) => `${name}=${one}`) : [name],
);

test('any request is answered under any quirks, and on a connection with any faults', () => {
  const chosen = fc.uniqueArray(fc.constantFrom(...variants), {
    selector: (variant) => variant.split('=')[0],
  });
  const asked = fc.array(fc.tuple(line, headers), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(chosen, asked, (played, all) => {
      const faults = faultKinds.map(({ name }) => `${name}=0.05`);
      const platform = stage({ quirks: played, faults, limits: ['*=5/1'] });
      platform.seed.contact({ id: 'con_1', email: 'A@b.c', channels: { ch_news: 'opt_in' } });
      platform.seed.template({ id: 'tpl_1', name: 'One', subject: '{{name}}' });
      platform.seed.domain({ id: 'dom_1', domain: 'one.example' });
      platform.seed.user({ name: 'Ann', email: 'ann@one.example', session: 's_1' });
      for (const [{ line: text, body: given }, sent] of all) {
        const [method = '', path = ''] = text.split(' ');
        const body = typeof given === 'string' ? given : JSON.stringify(given);
        const delivery = platform.receive({ method, path, headers: sent, body });
        if (delivery.is === 'reset' || delivery.is === 'silence') continue;
        const { status, headers, body: answer } = delivery.answer;
        expect([200, 201, 400, 401, 403, 404, 405, 409, 422, 429, 500]).toContain(status);
        if (headers['content-type']?.startsWith('text/html')) continue;
        const json = JSON.parse(answer);
        if (status >= 400) expect(json.message).toEqual(expect.any(String));
      }
    }),
    { numRuns: extent(100, 1000) },
  );
});
