import { expect, test } from 'vitest';
import { createWorld, launch } from '../../support/engine/engine-world.ts';
import { playsAll } from '../../support/extent.ts';

test.runIf(playsAll)(
  'a snapshot belongs to one platform: another address is refused, nothing is sent',
  async () => {
    const mine = await createWorld({ kinds: ['contact'] });
    mine.people([{ email: 'ann@example.com', news: 'no' }]);
    mine.emulator.seed.contact({ email: 'ann@example.com', channels: { ch_news: 'opt_in' } });
    const other = await createWorld({ kinds: ['contact'] });
    other.people([{ email: 'ann@example.com', news: 'yes' }]);
    other.emulator.seed.contact({ email: 'ann@example.com', channels: { ch_news: 'opt_out' } });
    const snapshot = `${mine.folder}/bound.sqlite`;

    const first = await launch(['sync', '-c', mine.config({ snapshot })]).ended;
    expect(first.code).toBe(0);
    for (const command of ['plan', 'sync']) {
      const { code, stderr } = await launch([command, '-c', other.config({ snapshot })]).ended;
      expect({ command, code }).toEqual({ command, code: 2 });
      expect(stderr).toContain(`belongs to the platform at ${mine.server.url}`);
    }
    expect(other.writes()).toEqual([]);
  },
);
