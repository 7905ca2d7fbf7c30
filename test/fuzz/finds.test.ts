/** What `npm run fuzz` has found does not come back. */
import { describe, expect, test } from 'vitest';
import { keptOf } from './finds.ts';
import { areas } from './fuzz.ts';

describe('an input that once failed', () => {
  test.each(areas.map((area) => [area.name, area] as const))(
    'is handled: %s',
    async (name, area) => {
      const { judge, close } = await area.open();
      try {
        for (const [file, input] of await keptOf(name)) {
          const found = await judge(input).catch((error: unknown) => error);
          expect([file, found]).toEqual([file, undefined]);
        }
      } finally {
        await close();
      }
    },
  );
});
