import type { Ids } from '../shared/seeded-random.ts';
import type { Shelf } from './storage.ts';
import type { UserRow } from '../shared/row-types.ts';

/** A user to add; what is left out is drawn. */
export interface NewUser {
  name: string;
  email: string;
  id?: string | undefined;
  session?: string | undefined;
  organizationId?: string | null | undefined;
}

/** The users of all organizations, and those of none. */
export interface Users {
  add(user: NewUser): UserRow;
  put(row: UserRow): void;
  byId(id: string): UserRow | undefined;
  bySession(session: string): UserRow | undefined;
  rows(): IterableIterator<UserRow>;
  clear(): void;
}

/** Creates an empty list of users. */
export function createUsers(ids: Ids, shelf: Shelf<UserRow>): Users {
  const byId = new Map<string, UserRow>();
  const bySession = new Map<string, UserRow>();

  function put(row: UserRow): void {
    byId.set(row.id, row);
    bySession.set(row.session, row);
  }

  return {
    add({ id = ids('user'), session = ids('session'), organizationId = null, name, email }) {
      const row = { id, name, email, session, organizationId };
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    byId: (id) => byId.get(id),
    bySession: (session) => bySession.get(session),
    rows: () => byId.values(),
    clear() {
      byId.clear();
      bySession.clear();
    },
  };
}
