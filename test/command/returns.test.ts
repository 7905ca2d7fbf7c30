/** Who leaves on the platform is told to the CRM: by the command line, from end to end. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from './mirrored.ts';

const head = 'return,email,crm id,channel,cause,after,by';

interface Returning extends Mirrored {
  back: string;
  /** The rows of the file, without their header: email, crm id, channel, cause. */
  told(): string[];
}

/** Both have been seen subscribed; the file is not there yet. */
async function returning(contacts: Record<string, unknown> = {}): Promise<Returning> {
  const world = await mirrored();
  const returns = { type: 'csv', path: './back.csv' };
  world.config({ contacts: { returns, ...contacts } });
  const back = join(world.folder, 'back.csv');
  const told = (): string[] => {
    if (!existsSync(back)) return [];
    const [first, ...lines] = readFileSync(back, 'utf8').trimEnd().split('\n');
    expect(first).toBe(head);
    return lines.map((line) => line.split(',').slice(1, 5).join(','));
  };
  await world.call('sync');
  return { ...world, back, told };
}

describe('returns', () => {
  test('who left a channel, and who left all mail, each once', async () => {
    const { call, emulator, told, back } = await returning();
    expect(existsSync(back)).toBe(false);
    emulator.dashboard.leave(ann, 'ch_news');
    const first = await call('sync', '--json');
    expect(first.json.returns).toEqual({ told: 1, rejected: 0, waiting: 0, leftOut: 0 });
    expect(told()).toEqual([`${ann},id-${ann},ch_news,opt_out`]);
    emulator.dashboard.unsubscribe(bob);
    await call('sync');
    const all = [`${ann},id-${ann},ch_news,opt_out`, `${bob},id-${bob},*,unsubscribed`];
    expect(told()).toEqual(all);
    for (const words of [['sync'], ['sync', '--fast'], ['one', ann], ['one', bob]]) {
      const { json } = await call(...words, '--json');
      expect(json.returns.told).toBe(0);
    }
    expect(told()).toEqual(all);
  });
});
