/** A search by the index finds what a search through all addresses finds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import { virtualClock } from '../support/waiting.ts';

const name = fc.string({ unit: fc.constantFrom('a', 'b', 'A', '_', '.', '@'), maxLength: 7 });
const address = fc.tuple(name, fc.constantFrom('x.test', 'y.test')).map((two) => two.join('@'));

function search(emulator: ReturnType<typeof createEmulator>, text: string): string[] {
  const path = `/api/contacts/list?limit=100&search=${encodeURIComponent(text)}`;
  const { body } = emulator.handle({ method: 'GET', path, headers: { 'x-api-key': 'key' } });
  const { contacts }: { contacts: { email: string }[] } = JSON.parse(body);
  return contacts.map(({ email }) => email);
}

test('for every text and after every change', () => {
  const clock = virtualClock();
  const plans = fc.array(address, { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(plans, fc.array(address, { maxLength: 5 }), address, (people, gone, text) => {
      const emulator = createEmulator({
        clock,
        random: seeded(1),
        apiKey: 'key',
        limits: ['*=999999/1'],
      });
      for (const [at, email] of people.entries())
        emulator.seed.contact({ email, createdAt: at % 3 });
      for (const email of gone)
        if (emulator.world.contact(email)) emulator.dashboard.deleteContact(email);
      const all = emulator.world.contacts().map(({ email }) => email);
      const needle = text.toLowerCase();
      const expected = all.filter((email) => email.trim().toLowerCase().includes(needle));
      expect(search(emulator, text)).toEqual(expected);
    }),
    { seed: 7, numRuns: 300 },
  );
});
