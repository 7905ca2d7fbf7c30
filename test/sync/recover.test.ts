import { describe, expect, test } from 'vitest';
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
