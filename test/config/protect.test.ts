/** Who is protected: addresses and conditions. */
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, remove } = makeFolder();
afterAll(remove);

describe('contacts.protect', () => {
  const protecting = (list: string) =>
    minimal(
      [
        'contacts:',
        '  source: { type: csv, path: p.csv }',
        '  id: id',
        '  email: email',
        `  protect: ${list}`,
        '  channels: [{ id: ch, subscription: news }]',
      ].join('\n'),
    );

  it('takes addresses and conditions', () => {
    const { contacts } = load(protecting(`[ceo@example.com, { when: 'record.vip == "yes"' }]`));
    const [address, condition] = contacts?.protect ?? [];
    expect(address).toBe('ceo@example.com');
    expect(condition).toMatchObject({ when: { fields: ['vip'] } });
  });

  it('refuses what is neither', () => {
    expect(() => load(protecting('[ceo]'))).toThrow('contacts.protect[0]');
  });
});
