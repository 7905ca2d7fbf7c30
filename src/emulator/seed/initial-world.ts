import { Invalid } from '../../domain/errors.ts';
import type { SeedFile, SeedOrganization } from './seed-file.ts';
import { createSeed, type Seed, seedUser } from './seed-records.ts';
import type { Accounts } from '../store/accounts.ts';
import type { Channel } from '../shared/row-types.ts';

/** The contents of the initial world, used if no earlier process has stored one. */
export interface Beginning {
  /** Added to the first organization's keys from the seed file. */
  apiKey: string | undefined;
  /** Used if the first organization gets no other key. */
  drawnKey: string;
  /** Added to the first organization's channels from the seed file. */
  channels: readonly Channel[];
  seedFile: SeedFile | undefined;
}

/** Creates the organizations and their records. Throws Invalid with a list of all mistakes. */
export function arrange(accounts: Accounts, beginning: Beginning): void {
  const { apiKey, drawnKey, channels, seedFile } = beginning;
  const wrong: string[] = [];
  const trying: Trying = (where, make) => {
    try {
      make();
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      wrong.push(`${where()}${error.message}`);
    }
  };

  for (const [index, wanted] of (seedFile?.organizations ?? [{}]).entries()) {
    const where = (path: PropertyKey[]) => `${seedFile?.where(index, path)}  `;
    trying(
      () => where([]),
      () => {
        const organization = accounts.addOrganization(wanted);
        const seed = createSeed(accounts, organization);
        if (index === 0) {
          for (const channel of channels) trying(nowhere, () => seed.channel(channel));
          if (apiKey !== undefined) trying(nowhere, () => seed.key({ secret: apiKey }));
        }
        plant(seed, wanted, (path, make) => trying(() => where(path), make));
        const isKeyless = organization.keys.rows().next().done === true;
        if (isKeyless) seed.key(index === 0 ? { secret: drawnKey } : {});
      },
    );
  }
  for (const [index, guest] of (seedFile?.guests ?? [GUEST]).entries()) {
    const where = () => `${seedFile?.where(undefined, ['guests', index])}  `;
    trying(where, () => seedUser(accounts, guest));
  }
  if (wrong.length > 0) throw new Invalid(wrong.map((reason) => ({ code: 'invalid', reason })));
}

/** A user who can sign in but belongs to no organization. */
const GUEST = { id: 'user_guest', name: 'Guest', email: 'guest@nowhere.example' };

/** Creates one record. If that fails, notes the reason and the position in the seed file. */
type Trying = (where: () => string, make: () => void) => void;

function nowhere(): string {
  return '';
}

function plant(
  seed: Seed,
  wanted: SeedOrganization,
  at: (path: [kind: string, index: number], make: () => void) => void,
): void {
  const all = <T>(kind: string, records: readonly T[] | undefined, make: (record: T) => void) => {
    for (const [index, record] of (records ?? []).entries()) at([kind, index], () => make(record));
  };
  all('channels', wanted.channels, seed.channel);
  all('keys', wanted.keys, ({ key, ...rest }) => seed.key({ ...rest, secret: key }));
  all('users', wanted.users, seed.user);
  all('people', wanted.people, seed.contact);
  all('templates', wanted.templates, seed.template);
  all('domains', wanted.domains, seed.domain);
}
