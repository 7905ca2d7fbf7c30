/** Finds what a listing shows that is not the mirror's, or that the mirror misses. */
import type { Statements } from '../database/prepared-statements.ts';

/** Records of one sort: how many, and the first of them. */
export interface Drifted {
  count: number;
  /** Keys or names; of contacts that are not ours, ids of the platform. */
  records: string[];
}

/** What was listed, compared with what is recorded and with the source. `most`: to name at most. */
export interface PlatformDrift {
  /** Contacts that are neither ours nor in the source, by their ids. */
  foreignContacts(most: number): Drifted;
  /** Templates that are neither ours nor in the source, by their names. */
  foreignTemplates(most: number): Drifted;
  /** Addresses that several contacts have, by key. */
  sharedAddresses(most: number): Drifted;
  /** Our contacts that the listing shows under another address, by the key that is recorded. */
  renamed(most: number): Drifted;
  /** Our contacts that the listing lacks, by key. */
  vanished(most: number): Drifted;
  /** The records with a problem of this cause, by key, each with its own reason. */
  withProblem(kind: string, cause: string, most: number): { key: string; reason: string }[];
}

/** Prepares the statements. */
export function platformDriftIn(db: Statements): PlatformDrift {
  const ours = `select 1 from recorded r where r.kind = o.kind and r.ownership <> 'noted'`;
  // A contact that was ours under another address, as it is recorded before and after a run.
  const renamed = `select r.key from recorded r
    where r.kind = o.kind and r.key <> o.key and r.ownership <> 'noted' and (r.id = o.id
      or exists (select 1 from renamed n where n.kind = r.kind and n.id = o.id and n.key = r.key))`;
  return {
    foreignContacts: drifted(
      db,
      `select o.id name from temp.observed o where o.kind = 'contact'
         and not exists (${ours} and r.key = o.key) and not exists (${renamed})
         and not exists (select 1 from temp.staged s where s.kind = o.kind and s.key = o.key)`,
    ),
    foreignTemplates: drifted(
      db,
      `select o.alias name from temp.observed o where o.kind = 'template'
         and not exists (${ours} and r.id = o.id)
         and not exists (select 1 from temp.desired d where d.kind = o.kind and d.alias = o.alias)`,
    ),
    sharedAddresses: drifted(
      db,
      `select o.key name from temp.observed o where o.kind = 'contact'
       group by o.key having count(*) > 1`,
    ),
    vanished: drifted(
      db,
      `select r.key name from recorded r where r.kind = 'contact' and r.ownership <> 'noted'
         and not exists (select 1 from temp.observed o where o.kind = r.kind and o.id = r.id)
         and not exists (select 1 from temp.observed o where o.kind = r.kind and o.key = r.key)
         and not exists (select 1 from renamed n join temp.observed o
           on o.kind = n.kind and o.id = n.id where n.kind = r.kind and n.key = r.key)`,
    ),
    renamed: drifted(
      db,
      `select distinct name from (select (${renamed}) name from temp.observed o
         where o.kind = 'contact') where name is not null`,
    ),
    withProblem: withProblem(db),
  };
}

function drifted(db: Statements, sql: string): (most: number) => Drifted {
  const count = db.prepare<[], { n: number }>(`select count(*) n from (${sql})`);
  const names = db.prepare<[number], { name: string }>(`${sql} order by name limit ?`);
  return (most) => ({
    count: count.get()?.n ?? 0,
    records: names.all(most).map(({ name }) => name),
  });
}

function withProblem(db: Statements): PlatformDrift['withProblem'] {
  const records = db.prepare<[string, string, number], { key: string; reason: string }>(
    `select key, min(reason) reason from temp.noticed where kind = ? and cause = ?
     group by key order by key limit ?`,
  );
  return (kind, cause, most) => records.all(kind, cause, most);
}
