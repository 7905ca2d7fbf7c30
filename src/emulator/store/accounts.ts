import type { Random } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { createIds, startDraws } from '../shared/seeded-random.ts';
import type { KeyRow, NewUser, UserRow } from '../shared/row-types.ts';
import { createOrganization, type Ground, type Organization, ownerOf } from './organization.ts';
import type { Storage, StoredRow } from './storage.ts';
import { createLookup, createTable } from './table.ts';

export type Accounts = ReturnType<typeof createAccounts>;

/** Creates the organizations of a world, and its users. */
export function createAccounts(
  storage: Storage,
  { random, now, behaviour }: { random: Random } & Pick<Ground, 'now' | 'behaviour'>,
) {
  const draws = startDraws(random);
  const shelves = { draws: storage.shelf('draws', ''), named: storage.shelf('organization', '') };
  const ids = createIds(draws, () => shelves.draws.keep(draws));
  const ground: Ground = { ids, storage, now, behaviour };
  const organizations = new Map<string, Organization>();
  const bySession = createLookup<UserRow>(({ session }) => session);
  const users = createTable(storage.shelf('user', ''), [bySession]);
  const addUser = ({ id = ids('user'), session = ids('session'), ...user }: NewUser): UserRow =>
    users.insert({ ...user, id, session, organizationId: user.organizationId ?? null });

  return {
    organizations,
    /** Adds an organization, with an owner and session. Throws Invalid if the id is taken. */
    addOrganization(named: { id?: string | undefined; name?: string | undefined }): Organization {
      const { id = ids('org'), name = id } = named;
      if (organizations.has(id)) {
        throw new Invalid(`organization "${id}" exists already: give every one its own id`);
      }
      const organization = createOrganization({ id, name }, ground);
      organizations.set(id, organization);
      shelves.named.keep({ id, name });
      addUser({ ...ownerOf(id), organizationId: id });
      return organization;
    },
    users: { ...users, add: addUser, bySession: bySession.find },
    /** Finds the organization of a key, even if the key is revoked or disabled. */
    byKey(secret: string): { organization: Organization; key: KeyRow } | undefined {
      for (const organization of organizations.values()) {
        const key = organization.keys.bySecret(secret);
        if (key !== undefined) return { organization, key };
      }
      return undefined;
    },
    /** Returns all rows; organizations come before the rows that belong to them. */
    *rows(): Generator<StoredRow> {
      yield { kind: 'draws', organization: '', row: { ...draws } };
      for (const row of users.rows()) yield { kind: 'user', organization: '', row };
      for (const { id, name } of organizations.values()) {
        yield { kind: 'organization', organization: '', row: { id, name } };
      }
      for (const organization of organizations.values()) yield* organization.rows();
    },
    /** Replaces the world with these rows. The objects of existing organizations are reused. */
    restore(rows: readonly StoredRow[]): void {
      const before = new Map(organizations);
      for (const organization of before.values()) organization.clear();
      users.clear();
      organizations.clear();
      for (const stored of rows) {
        const { kind, row } = stored;
        if (kind === 'draws') Object.assign(draws, row);
        else if (kind === 'user') users.put(row);
        else if (kind === 'organization') {
          organizations.set(row.id, before.get(row.id) ?? createOrganization(row, ground));
        } else organizations.get(stored.organization)?.put(stored);
      }
    },
  };
}
