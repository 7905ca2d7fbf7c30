/** An undo that takes longer than a slice, while the CRM changes. */
import { expect, test } from 'vitest';
import type { Certificate } from '../../../src/sources/source.ts';
import { openStage } from '../../support/engine/engine-stage.ts';

test('created contacts are deleted although the CRM is read again in between', async () => {
  let outs = 0;
  const stage = openStage({
    policy: { deletes: 'created' },
    guards: { delete: { percent: 100, floor: 1000 } },
    limits: ['contacts.enrol=1/60', '*=1000000/1'],
    wire: (send) => async (request, signal) => {
      if (request.path.startsWith('/api/contacts/channel/')) {
        outs += 1;
        if (outs === 25) stage.certificate = { complete: true, reading: 'second' } as Certificate;
      }
      return send(request, signal);
    },
  });
  for (let at = 10; at < 30; at += 1)
    stage.people.push({ id: `${at}`, email: `p${at}@example.com`, ch_news: 'yes' });
  const { run } = await stage.sync();
  const undo = await stage.sync({ mode: 'undo', undo: { run } });
  expect(undo.ms).toBeGreaterThan(10 * 60_000);
  expect(undo).toMatchObject({ contacts: { applied: { opt_out: 20, delete: 20 } } });
});
