/** An opt-out that cannot be read, as the command line tells it. */
import { expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

const contacts = { unsubscribed: 'left', deleted: 'gone' };

test('fails each run, is shown first everywhere, and ends once the value is mended', async () => {
  const world = await mirrored({ lines: { contacts } });
  const exportWith = (left: string): void =>
    world.csv(
      [
        'id,email,news,product,left,gone',
        `1,ann@example.com,yes,,${left},`,
        '2,bob@example.com,maybe,,,',
        '3,cy@example.com,yes,,,',
        '',
      ].join('\n'),
    );
  exportWith('');
  await world.call('sync');
  exportWith('45900');
  const modes = [
    ['sync'],
    ['sync'],
    ['sync', '--fast'],
    ['sync', '--person', 'ann@example.com'],
    ['sync'],
  ];
  for (const mode of modes) {
    const { code, out } = await world.call(...mode);
    expect([mode, code]).toEqual([mode, 4]);
    expect(out).toContain('contacts.unsubscribed: "99999" cannot be read');
  }
  const problems = (await world.seen('problems')).out.split('\n');
  expect(problems[1]).toMatch(
    /1 × invalid +contacts.unsubscribed: "45900" cannot be read, and may say that a subscribed/,
  );
  const { json } = await world.call('status', '--json');
  expect(json.attention[0].code).toBe('opt_outs_unreadable');
  expect(json.optOutsUnreadable).toMatchObject({
    count: 1,
    people: [{ since: expect.any(String) }],
  });
  expect((await world.call('status')).out).toContain('1 opt-out of the CRM may be waiting');
  expect(world.shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });

  exportWith('03/01/2026 9:05 AM');
  expect((await world.call('sync')).code).toBe(0);
  expect(world.shown('ann@example.com')).toMatchObject({ ch_news: 'opt_out' });
  const { attention } = (await world.call('status', '--json')).json;
  expect(attention).toEqual([]);
});

test('`check` and `explain` read a serial number as runs do', async () => {
  const world = await mirrored({ lines: { contacts } });
  const rows = (first: string) =>
    world.csv(
      ['id,email,news,product,left,gone', `1,a@example.com,yes,,45900,`, first, ''].join('\n'),
    );
  rows('2,b@example.com,yes,,2026-03-01,');
  const dates = await world.call('check', '--json');
  expect([dates.code, dates.json.contacts.invalid]).toEqual([0, 0]);
  const explained = (await world.seen('explain', 'a@example.com')).out;
  expect(explained).toMatch(/contacts\.unsubscribed.*45900.*yes|left.*45900.*yes/);
  rows('2,b@example.com,yes,,no,');
  const mixed = await world.call('check', '--json');
  expect([mixed.code, mixed.json.contacts.invalid]).toEqual([1, 1]);
});
