import { Invalid } from '../../domain/errors.ts';
import type { ContactRow } from '../shared/row-types.ts';
import { emailKey } from './contact.ts';

/** The contacts by email; several with one email in the order they were added. */
export interface Emails {
  of(email: string): readonly ContactRow[];
  add(row: ContactRow): void;
  remove(row: ContactRow): void;
  /** Gives the contact this email. Throws Invalid if another has it, in any case. */
  move(row: ContactRow, email: string): void;
  clear(): void;
}

/** Creates an empty index. */
export function createEmails(): Emails {
  const rows = new Map<string, ContactRow[]>();
  const of = (email: string) => rows.get(emailKey(email)) ?? [];

  function add(row: ContactRow): void {
    rows.set(row.key, [...of(row.key), row]);
  }

  function remove(row: ContactRow): void {
    const duplicates = of(row.key).filter((twin) => twin !== row);
    if (duplicates.length > 0) rows.set(row.key, duplicates);
    else rows.delete(row.key);
  }

  return {
    of,
    add,
    remove,
    move(row, email) {
      const other = of(email).find((one) => one !== row);
      if (other) {
        const { id, email: taken } = other;
        throw new Invalid(`contact "${id}" has the email "${taken}" already: choose another`);
      }
      remove(row);
      Object.assign(row, { email, key: emailKey(email) });
      add(row);
    },
    clear: () => rows.clear(),
  };
}
