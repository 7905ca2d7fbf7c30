/** Spellings of one address, found by other means than the product's. */
import type { Emulator } from '../../../src/emulator/emulator.ts';

/** Returns the address in the one spelling that stands for all of them. */
export function keyOf(email: string): string {
  const text = email.trim().normalize('NFC').toLowerCase();
  const at = text.lastIndexOf('@') + 1;
  const url = `http://${text.slice(at)}`;
  return at > 0 && URL.canParse(url) ? text.slice(0, at) + new URL(url).hostname : text;
}

/** The domain of an address in `people of the world`, as the CRM writes it. */
const domains: Record<string, string> = { 'xn--mller-kva.com': 'müller.com' };

/** Returns the address with the letters of its domain; the address itself if it has no others. */
export function withLetters(key: string): string {
  const [local, host = ''] = key.split('@');
  return `${local}@${domains[host] ?? host}`;
}

/** Returns the address as the platform spells it; the key if no contact has it. */
export function thereAs({ world }: Pick<Emulator, 'world'>, key: string): string {
  return world.contacts().find(({ email }) => keyOf(email) === key)?.email ?? key;
}
