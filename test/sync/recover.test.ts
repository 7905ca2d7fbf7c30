import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/model/errors.ts';
import type { Send } from '../../src/model/exchange.ts';
import { createStage } from './process.ts';

const letter = {
  key: 'welcome',
  subject: 'Hello',
  content: [{ text: 'Dear {{name}}' }],
  variables: [{ name: 'name', type: 'string', defaultValue: null }],
  status: 'published',
};

describe.each(['keep', 'overwrite'] as const)('templates: %s', (templates) => {
  test.each(['timeout-after', 'timeout-before', 'reset-after', 'half', 'garbage'])(
    'the second step of a creation that ends in %s is found by the id of the first',
    async (fault) => {
      const stage = createStage({
        policy: { templates },
        platform: { faults: [`${fault}@templates.update`] },
      });
      stage.templates.push(letter);
      await stage.sync();
      stage.emulator.fail([]);
      const summary = await stage.sync();
      expect(summary.templates).toMatchObject({ conflicts: 0, rejected: 0 });
      expect(stage.emulator.world.templates()).toMatchObject([
        { name: 'welcome', variables: letter.variables, status: 'published' },
      ]);
      stage.writes();
      await stage.sync();
      expect(stage.writes()).toEqual([]);
      stage.close();
    },
  );
});

/** The first few searches for this address come to nothing. */
function deaf(address: string, times: number): (send: Send) => Send {
  let left = times;
  return (send) => async (request, signal) => {
    if (request.path.includes(encodeURIComponent(address)) && left > 0) {
      left -= 1;
      throw new Unavailable('no answer', { acted: 'maybe' });
    }
    return send(request, signal);
  };
}

test('a creation whose look failed is not proof that the person is absent', async () => {
  const stage = createStage({ wire: deaf('left@example.com', 4) });
  stage.emulator.seed.contact({ email: 'left@example.com', status: 'unsubscribed' });
  for (const name of ['left', 'new']) {
    const email = `${name}@example.com`;
    stage.people.push({ id: name, email, ch_news: 'yes', ch_product: 'yes' });
  }
  await stage.sync({ mode: 'fast' });
  expect(new Set(stage.writes().map(({ email }) => email))).toEqual(new Set(['new@example.com']));
  const summary = await stage.sync({ mode: 'fast' });
  expect(stage.writes()).toEqual([]);
  expect(summary.contacts.conflicts).toBe(1);
  stage.close();
});
