import type { Random } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { createIds, type Ids, startDraws } from '../shared/seeded-random.ts';
import type { KeyRow, UserRow } from '../shared/row-types.ts';
import { createOrganization, type Ground, type Organization, ownerOf } from './organization.ts';
import type { Shelf, Storage, StoredRow } from './storage.ts';

export interface Accounts {
  readonly organizations: ReadonlyMap<string, Organization>;
  /** Adds an organization, with an owner and session. Throws Invalid if the id is taken. */
  addOrganization(named: { id?: string | undefined; name?: string | undefined }): Organization;
  readonly users: Users;
  /** Finds the organization of a key, even if the key is revoked or disabled. */
  byKey(secret: string): { organization: Organization; key: KeyRow } | undefined;
  /** Returns all rows; organizations come before the rows that belong to them. */
  rows(): Generator<StoredRow>;
  /** Replaces the world with these rows. The objects of existing organizations are reused. */
  restore(rows: readonly StoredRow[]): void;
}

export function createAccounts(
  storage: Storage,
  { random, now, behaviour }: { random: Random } & Pick<Ground, 'now' | 'behaviour'>,
): Accounts {
  const draws = startDraws(random);
  const shelves = { draws: storage.shelf('draws', ''), named: storage.shelf('organization', '') };
  const ids = createIds(draws, () => shelves.draws.keep(draws));
  const ground: Ground = { ids, storage, now, behaviour };
  const organizations = new Map<string, Organization>();
  const users = createUsers(ids, storage.shelf('user', ''));

  return {
    organizations,
    addOrganization({ id = ids('org'), name = id }) {
      if (organizations.has(id)) {
        throw new Invalid(`organization "${id}" exists already: give every one its own id`);
      }
      const organization = createOrganization({ id, name }, ground);
      organizations.set(id, organization);
      shelves.named.keep({ id, name });
      const owner = { id: ownerOf(id), name: 'Owner', email: `owner@${id}.example` };
      users.add({ ...owner, organizationId: id });
      return organization;
    },
    users,
    byKey(secret) {
      for (const organization of organizations.values()) {
        const key = organization.keys.bySecret(secret);
        if (key !== undefined) return { organization, key };
      }
      return undefined;
    },
    *rows() {
      yield { kind: 'draws', organization: '', row: { ...draws } };
      for (const row of users.rows()) yield { kind: 'user', organization: '', row };
      for (const { id, name } of organizations.values()) {
        yield { kind: 'organization', organization: '', row: { id, name } };
      }
      for (const organization of organizations.values()) yield* organization.rows();
    },
    restore(rows) {
      const before = new Map(organizations);
      for (const organization of before.values()) organization.clear();
      users.clear();
      organizations.clear();
      for (const stored of rows) {
        if (stored.kind === 'draws') Object.assign(draws, stored.row);
        else if (stored.kind === 'user') users.put(stored.row);
        else if (stored.kind === 'organization') {
          organizations.set(
            stored.row.id,
            before.get(stored.row.id) ?? createOrganization(stored.row, ground),
          );
        } else organizations.get(stored.organization)?.put(stored);
      }
    },
  };
}

/** A user to add. Omitted fields are generated. */
export interface NewUser {
  name: string;
  email: string;
  id?: string | undefined;
  session?: string | undefined;
  organizationId?: string | null | undefined;
}

function createUsers(ids: Ids, shelf: Shelf<UserRow>) {
  const byId = new Map<string, UserRow>();
  const bySession = new Map<string, UserRow>();

  function put(row: UserRow): void {
    byId.set(row.id, row);
    bySession.set(row.session, row);
  }

  return {
    add({
      id = ids('user'),
      session = ids('session'),
      organizationId = null,
      name,
      email,
    }: NewUser): UserRow {
      const row = { id, name, email, session, organizationId };
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    byId: (id: string) => byId.get(id),
    bySession: (session: string) => bySession.get(session),
    rows: () => byId.values(),
    clear(): void {
      byId.clear();
      bySession.clear();
    },
  };
}

export type Users = ReturnType<typeof createUsers>;
