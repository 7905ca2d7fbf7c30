/** What a sealed text can be opened for, and what not. */
import { openErasure, sealErasure } from '../../src/worker/mirror-host.ts';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { type Seal, sealOf } from '../../src/compose/queues/payload-encryption.ts';

const random = randomBytes;
const acme = sealOf({ key: '7f'.repeat(32), mirror: 'acme', random });
const globex = sealOf({ key: '7f'.repeat(32), mirror: 'globex', random });
const stranger = sealOf({ key: '5f'.repeat(32), mirror: 'acme', random });

const now = Date.UTC(2026, 10, 28);
const day = 86_400_000;
const minute = 60_000;
const words = 'another memory, or for something else';

/** A text that one of the seals was asked to encrypt, and which somebody plays as a command. */
const played: [string, string, RegExp | undefined][] = [
  ['a command', acme.closeOrder('sync', 'command', now).sealed, undefined],
  [
    'a command of two minutes ago',
    acme.closeOrder('sync', 'command', now - 2 * minute).sealed,
    undefined,
  ],
  [
    'a command of more than two minutes ago',
    acme.closeOrder('sync', 'command', now - 2 * minute - 1).sealed,
    /^this command was valid until 2026-11-27T23:59:59\.999Z/,
  ],
  ['one of another mirror', globex.closeOrder('sync', 'command', now).sealed, new RegExp(words)],
  ['one of another key', stranger.closeOrder('sync', 'command', now).sealed, new RegExp(words)],
  ['an event', acme.closeOrder('sync', 'event', now).sealed, new RegExp(words)],
  ['an outcome', acme.close('sync', { purpose: 'outcome', about: '1' }), new RegExp(words)],
  [
    // What a CRM calls a record, as the log of deliveries has it.
    'an id that looks like a command',
    acme.close(JSON.stringify({ number: '1', expiresAt: now + day, text: 'sync' }), {
      purpose: 'delivery',
    }),
    new RegExp(words),
  ],
  ['nothing', '', new RegExp(words)],
  ['what is not sealed', Buffer.alloc(99).toString('base64'), new RegExp(words)],
];

test.each(played)('%s, played as a command', (_, sealed, refused) => {
  const open = () => acme.openOrder(sealed, 'command', now).text;
  if (refused) expect(open).toThrow(refused);
  else expect(open()).toBe('sync');
});

test('a command that is sealed anew is the same command, valid for longer', () => {
  const first = acme.closeOrder('sync', 'command', now - day);
  const { sealed } = acme.closeOrder('sync', 'command', now, first.number);
  const { number, expiresAt } = acme.openOrder(sealed, 'command', now, first.number);
  expect([number, expiresAt]).toEqual([first.number, now + 2 * minute]);
  expect(() => acme.openOrder(sealed, 'command', now, 'of another one')).toThrow('was valid until');
});

test('an outcome belongs to one command', () => {
  const outcome = acme.close('done', { purpose: 'outcome', about: '1' });
  expect(acme.open(outcome, { purpose: 'outcome', about: '1' })).toBe('done');
  expect(() => acme.open(outcome, { purpose: 'outcome', about: '2' })).toThrow(words);
});

test('a tag that was cut off is refused', () => {
  const sealed = Buffer.from(acme.close('sync', { purpose: 'link' }), 'base64');
  const cut = sealed.subarray(0, 16).toString('base64');
  expect(() => acme.open(cut, { purpose: 'link' })).toThrow(words);
});

test('a number is used once, and kept for long after it has expired', () => {
  const { usedNumbers, close } = openSnapshot('', { inMemory: true });
  expect(usedNumbers.use('1', now, now - day)).toBe(true);
  expect(usedNumbers.use('1', now, now)).toBe(false);
  // A clock that was days ahead.
  expect(usedNumbers.use('2', now, now + 29 * day)).toBe(true);
  expect(usedNumbers.use('1', now, now)).toBe(false);
  expect(usedNumbers.use('3', now, now + 31 * day)).toBe(true);
  expect(usedNumbers.has('1')).toBe(false);
  close();
});

const erasures: [string, Seal, string, number, boolean][] = [
  ['signed', acme, '4711', now, true],
  ['signed 90 days ago', acme, '4711', now - 90 * day, true],
  ['signed earlier', acme, '4711', now - 90 * day - 1, false],
  ['of another record', acme, '4712', now, false],
  ['of another mirror', globex, '4711', now, false],
];

test.each(erasures)('an erasure %s', (_, seal, id, at, isDone) => {
  const snapshot = openSnapshot('', { inMemory: true });
  const signature = sealErasure(seal, id, at);
  const open = () => openErasure(acme, { id: '4711', signature }, { snapshot, now });
  const order = open();
  expect(order !== undefined).toBe(isDone);
  if (order) snapshot.usedNumbers.use(order.number, order.expiresAt, now);
  expect(open()).toBeUndefined();
  snapshot.close();
});
