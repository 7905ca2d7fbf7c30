/** Tells whether the platform still shows what was written, some time after a change. */
import type { ReadBack } from '../read-back.ts';
import { decodeContact } from './observe/contact-rows.ts';

/** Returns what is wrong with a contact some time after a change; undefined if it is as written. */
export const readBackContact: ReadBack = ({ op, part, target }, { rows }) => {
  const seen = rows.map((row) => decodeContact.observed(row).value);
  if (op === 'delete') return seen.some(({ id }) => id === target) ? 'drift' : undefined;
  if (op === 'opt_out')
    return seen.some(({ channels, left }) => !left && channels[part] === 'opt_in')
      ? 'drift'
      : undefined;
  const contact = seen.find(({ id }) => id === target) ?? seen[0];
  if (!contact) return 'drift';
  if (contact.left || contact.channels[part] === 'opt_out') return 'unsubscribed';
  return contact.channels[part] === 'opt_in' ? undefined : 'drift';
};
