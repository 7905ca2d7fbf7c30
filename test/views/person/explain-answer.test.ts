/** `explain` answers first what would happen, and what in the CRM says so. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../../support/commands/mirrored-contacts.ts';

function states(world: Mirrored, option: string, field: string): void {
  const config = JSON.parse(readFileSync(world.file, 'utf8'));
  const contacts = { ...config.contacts, [option]: field };
  writeFileSync(world.file, JSON.stringify({ ...config, contacts }));
}

test('the answer comes first, then the column and the value that say so', async () => {
  const world = await mirrored();
  world.csv(`id,email,news,product,lost\n7,${ann},yes,,\n`);
  await world.call('sync');
  world.csv(`id,email,news,product,lost,Abgemeldet am\n7,${ann},yes,,,2026-01-03\n`);
  states(world, 'unsubscribed', 'Abgemeldet am');
  const { out } = await world.call('explain', ann);
  const all = out.split('\n');
  expect(all[2]).toBe('Which mail, and why');
  expect(all[3]).toMatch(
    /^ {2}ch_news: subscribed, because the CRM said so: opted in by this mirror on \d+ \w+ 2\d{3}; the CRM says no\.$/,
  );
  const [title, answer, ...more] = all.slice(all.indexOf('What a run would do'));
  expect(title).toBe('What a run would do');
  expect(answer).toBe('  ch_news: opt out: opt-out wanted; subscribed (stated-out)');
  expect(more.slice(0, 3)).toEqual([
    '      unsubscribed: column "Abgemeldet am" holds a date: yes (line 2)',
    '      subscription: column "news" holds "yes": in (line 2)',
    '      the CRM wants opt out; recorded opt in; the platform shows opt in',
  ]);
  expect(out).not.toMatch(/gone-not-ours|this decided/);
  expect((await world.seen('explain', ann)).out).toContain('holds "2026-01-03", a date: yes');
  expect((await world.call('explain', ann, '--verbose')).out).toMatch(
    /yes: this decided +stated-out +opt-out wanted; subscribed/,
  );
});

test('an opt-in of a record that cannot be read is not called no opinion', async () => {
  const world = await mirrored();
  world.csv(`id,email,news,product,lost\n7,${ann},yes,perhaps,\n`);
  const { out } = await world.call('explain', ann);
  expect(out).toContain('"news" holds "yes": in (line 2)');
  expect(out).toContain('a CRM record is invalid, so only its opt-outs count; recorded –;');
  expect(out).not.toContain('no opinion');
});

test('a person is found in a cell that is no address, and by the id of its record', async () => {
  const world = await mirrored();
  world.csv('id,email,news,product,lost\n7,jo.ann@example.com;x,,,\n');
  expect((await world.call('explain', ann)).out).toContain('unknown to the CRM');
  const cell = '7,"Ann <ann@example.com>, bob",yes,,';
  world.csv(`id,email,news,product,lost\n${cell}\n`);
  const { out } = await world.call('explain', ann);
  expect(out).toMatch(/^#\w+ in world\n/);
  expect(out).toContain('line 2 names this person, and cannot be read: "email" ');
  expect(out).toContain('no valid record of the CRM names this person; recorded –;');
  world.csv(`id,email,news,product,lost\n7,${ann},yes,,\n`);
  await world.call('sync');
  world.csv(`id,email,news,product,lost\n7,"ann at example.com",no,,\n`);
  const { out: known } = await world.call('explain', ann);
  expect(known).toContain('subscription: column "news" holds "no": out (line 2)');
});

test('a person is also named by the id of the CRM record', async () => {
  const world = await mirrored();
  world.csv(`id,email,news,product,lost\n0042,${ann},yes,,\n`);
  expect((await world.seen('explain', '0042')).out).toContain(`${ann} in world`);
  expect((await world.call('explain', '0043')).code).toBe(2);
});

test('an opt-in that awaits approval or was rejected is never called one to send', async () => {
  const world = await mirrored();
  world.config({ guards: { optIns: { percent: 0, floor: 1 } } });
  await world.call('sync');
  const names = [3, 4, 5].map((n) => `p${n}@example.com`);
  world.people(names.map((email) => ({ email, news: 'yes' })));
  expect((await world.call('sync')).code).toBe(3);
  const [waits = '', rejected = ''] = names;
  const { held } = (await world.call('status', '--json')).json;
  const file = join(world.folder, 'one.txt');
  writeFileSync(file, `${rejected}\n`);
  const part = ['--people', file, '--by', 'otto', '--reason', 'a test'];
  await world.call('reject', held[0].plan, ...part);
  const { out } = await world.call('explain', waits);
  expect(out).toContain('the CRM says yes, and the opt-in awaits approval.');
  expect(out).toContain('  awaits approval, not sent until then: create in ch_news\n');
  expect(out).not.toContain('to send');
  const later = (await world.call('explain', rejected)).out;
  expect(later).toContain('the CRM says yes, and the opt-in was rejected by an operator.');
  expect(later).toContain('  rejected, not sent: create in ch_news\n');
  expect(later).not.toContain('Awaiting approval');
  expect(later).toContain('Decided by an operator');
  const recorded = (await world.call('explain', waits, '--offline')).out;
  expect(recorded).toContain('ch_news: awaits a decision: create, because the CRM says so\n');
  expect(recorded).not.toContain('unknown to');
});

test('of a missing person explain says that full runs decide, and what they count', async () => {
  const world = await mirrored();
  const deletes = { percent: 0, floor: 0 };
  world.config({ guards: { deletes, absentReadings: 1, absentFor: '0s' } });
  await world.call('sync');
  world.people([{ email: bob, news: 'yes' }]);
  await world.call('sync');
  const due = (await world.call('explain', ann)).out;
  expect(due).toContain(
    '      a full run counts the person as missing, and decides by policy.absent\n',
  );
  const { out } = await world.call('explain', ann, '--offline');
  expect(out).toContain(
    'ch_product: full runs decide, because the person is missing from the CRM\n',
  );
  expect(out).not.toContain('nothing to do');
});

test('of a person whom the CRM flags as deleted explain says that, and nothing of missing', async () => {
  const world = await mirrored();
  const guards = { deletes: { percent: 0, floor: 0 } };
  world.config({ contacts: { deleted: 'gone' }, guards });
  world.csv(`id,email,news,product,gone\n1,${ann},yes,,\n2,${bob},yes,,\n`);
  await world.call('sync');
  world.csv(`id,email,news,product,gone\n1,${ann},yes,,true\n2,${bob},yes,,\n`);
  await world.call('sync');
  const asked = async () => (await world.call('explain', ann, '--offline')).out;
  const held = await asked();
  expect(held).toContain('because the CRM marks the person as deleted');
  expect(held).not.toMatch(/missing from the CRM|not in the CRM/);
  const [plan] = (await world.call('status', '--json')).json.held;
  await world.call('approve', plan.plan, '--by', 'otto', '--reason', 'a test');
  await world.call('sync');
  const out = await asked();
  expect(out).toContain('deleted in the CRM');
  expect(out).not.toMatch(/missing from the CRM|not in the CRM/);
});
