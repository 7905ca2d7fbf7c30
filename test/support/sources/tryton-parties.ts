/** Parties in a real Tryton, made and changed by its own calls, as its client does it. */
import { trytonOptions } from '../../../src/sources/tryton/options.ts';
import { trytonSource } from '../../../src/sources/tryton/tryton-source.ts';
import { plain } from '../../../src/sources/tryton/party-record.ts';
import type { Source } from '../../../src/sources/source.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import type { Access, TestTryton } from '../tryton.ts';

const BATCH = 500;

export type Person = Record<string, unknown>;

export interface Parties {
  /** Answers the ids, in this order. */
  create(people: readonly Person[]): Promise<number[]>;
  write(id: number, values: object): Promise<void>;
  remove(id: number): Promise<void>;
  /** Edits the contact mechanism that has this value, and nothing else. */
  readdress(value: string, values: object): Promise<void>;
  merge(loser: number, winner: number): Promise<void>;
  erase(id: number): Promise<void>;
  /** Deletes the contact mechanism that has this value, which leaves no trace. */
  unaddress(value: string): Promise<void>;
  categories(...names: string[]): Promise<number[]>;
  /** What Tryton itself says of the times of a party. */
  times(id: number): Promise<{ made: string; changed: string | null; mechanism: string | null }>;
}

export function partiesOf({ call }: TestTryton): Parties {
  const wizard = async (name: string, ask: object, state: string) => {
    const [session] = await call(`wizard.${name}.create`);
    await call(`wizard.${name}.execute`, session, { ask }, state);
    await call(`wizard.${name}.delete`, session);
  };
  return {
    async create(people) {
      const ids: number[] = [];
      for (let at = 0; at < people.length; at += BATCH) {
        ids.push(...(await call('model.party.party.create', people.slice(at, at + BATCH))));
      }
      return ids;
    },
    write: async (id, values) => call('model.party.party.write', [id], values),
    remove: async (id) => call('model.party.party.delete', [id]),
    async readdress(value, values) {
      const ids = await call('model.party.contact_mechanism.search', [['value', '=', value]]);
      await call('model.party.contact_mechanism.write', ids, values);
    },
    merge: async (source, destination) =>
      wizard('party.replace', { source, destination }, 'replace'),
    erase: async (party) => wizard('party.erase', { party }, 'erase'),
    async unaddress(value) {
      const ids = await call('model.party.contact_mechanism.search', [['value', '=', value]]);
      await call('model.party.contact_mechanism.delete', ids);
    },
    categories: async (...names) =>
      call(
        'model.party.category.create',
        names.map((name) => ({ name })),
      ),
    async times(id) {
      const names = ['create_date', 'write_date', 'contact_mechanisms.write_date'];
      const [party] = await call('model.party.party.read', [id], names);
      const mechanisms: (string | null)[] = party['contact_mechanisms.'].map(
        (each: { write_date: unknown }) => isoOf(each.write_date),
      );
      const latest = mechanisms.reduce((a, b) => ((b ?? '') > (a ?? '') ? b : a), null);
      return {
        made: isoOf(party.create_date) ?? '',
        changed: isoOf(party.write_date),
        mechanism: latest,
      };
    },
  };
}

/** As the client makes one: with an address of email, and maybe others. */
export function person(name: string, email: string | readonly string[], more: object = {}): Person {
  const addresses = [email].flat().map((value) => ({ type: 'email', value }));
  const mechanisms = [{ type: 'website', value: 'https://example.com' }, ...addresses];
  return { name, contact_mechanisms: [['create', mechanisms]], ...more };
}

export function sourceIn(access: Access, more: object = {}): Required<Source> {
  const options = trytonOptions.parse({ type: 'tryton', ...access, ...more });
  return trytonSource(options, { clock: systemClock, random: () => 0 });
}

/** Milliseconds are enough: the database keeps more. */
function isoOf(value: unknown): string | null {
  return value === null ? null : new Date(String(plain(value))).toISOString();
}
