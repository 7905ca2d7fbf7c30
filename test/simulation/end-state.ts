/** What platform and snapshot hold when a story has ended, for comparing two ways of the engine. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { canonicalJson } from '../../src/domain/record.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';

/** A number below 2^48, whatever the order of people, templates and fields. */
export function stateOf({ emulator }: { emulator: Pick<Emulator, 'world'> }): number {
  const { contacts, templates } = emulator.world;
  const all = [...contacts(), ...templates()].map((one) => canonicalJson(one)).toSorted();
  return numberOf(all.join('\n'));
}

const stored = ['recorded', 'origin', 'stated', 'twin', 'absence', 'problem', 'hold', 'returned'];

/** The same of what a snapshot knows of the people, whose rows have their order. */
export function storedIn(path: string): number {
  if (!existsSync(path)) return 0;
  const db = new Database(path, { readonly: true });
  const tables = stored.map((name) => JSON.stringify(db.prepare(`select * from ${name}`).all()));
  db.close();
  return numberOf(tables.join('\n'));
}

function numberOf(text: string): number {
  return Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 12), 16);
}
