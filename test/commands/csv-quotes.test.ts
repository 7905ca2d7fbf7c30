/** Stray quotes in the CRM's export, by the command line: what stands below them counts. */
import { expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

const address = (at: number) => `p${at}@example.com`;

/** Twenty people: one gets the note `cell`, and those from `out` on opt out. */
async function exported(cell: string, out: number) {
  const world = await mirrored();
  const rows = (news: (at: number) => string, note: string) =>
    Array.from({ length: 20 }, (_, at) => {
      return [at, address(at), news(at), '', at === 3 ? note : ''].join(',');
    });
  const head = 'id,email,news,product,lost';
  const write = (lines: string[]) => world.csv(`${[head, ...lines].join('\n')}\n`);
  write(rows(() => 'yes', ''));
  await world.call('sync');
  write(rows((at) => (at >= out ? 'no' : 'yes'), cell));
  const { code, json } = await world.call('sync', '--json');
  const subscribed = Array.from({ length: 20 }, (_, at) => address(at)).filter(
    (email) => world.shown(email)?.['ch_news'] === 'opt_in',
  );
  return { code, json, subscribed: subscribed.length };
}

test.each([
  ['text after a closing quote', '"24" wide'],
  ['a quote that is never closed', '"24 wide'],
])('opt-outs below %s are sent, and nothing else', async (_, note) => {
  const { json, subscribed } = await exported(note, 14);
  expect(subscribed).toBe(14);
  expect(json.certificate.source).toBe(false);
  expect(json.contacts.applied).toMatchObject({ create: 0, opt_in: 0, opt_out: 6, delete: 0 });
});
