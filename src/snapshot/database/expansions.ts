/**
 * Additions to the snapshot's tables that an earlier program does not notice. They leave the
 * version (`pragma user_version`) as it is, so a worker of a newer program can take a mirror over
 * from one of an earlier program, and hand it back, while both run.
 *
 *   an expansion        adds a column, a table or an index, and nothing else: it fills, changes,
 *                       limits and removes nothing
 *   what it adds        is null or empty in all that earlier programs wrote, and write in between:
 *                       that means "not known", and is treated as before the expansion
 *   a column            is never one of a table that a trigger fills without naming its columns
 *                       (`renamed`)
 *   a released one      is never edited or removed; a later migration may change what it added
 *
 * The schema itself shows which of them were applied. What an even newer program added stays, and
 * is ignored here. A snapshot that is only read is not changed: until a program writes it, its
 * readers see empty columns and tables (`standInForMissing`).
 */
import type Database from 'better-sqlite3';

/** One addition. `after` is the number of migrations that it follows. */
export type Expansion = { after: number } & (
  | { adds: 'column'; table: string; name: string; type: 'integer' | 'real' | 'text' }
  | { adds: 'table'; name: string; columns: string; rowid?: false }
  | { adds: 'index'; name: string; on: string }
);

/** The expansions, oldest first. A new one is added at the end, after all migrations. */
export const expansions: readonly Expansion[] = [
  // Whether the CRM stated what was withheld about this person, or the mirror concluded it.
  { after: 22, adds: 'column', table: 'held', name: 'stated', type: 'integer' },
  { after: 22, adds: 'column', table: 'standing', name: 'stated', type: 'integer' },
  // How many approvals and signatures had been given by then (snapshot/tables/approval-order.ts).
  { after: 22, adds: 'column', table: 'change', name: 'approvals_given', type: 'integer' },
  { after: 22, adds: 'column', table: 'approval', name: 'approvals_given', type: 'integer' },
  {
    after: 22,
    adds: 'column',
    table: 'approval_signature',
    name: 'approvals_given',
    type: 'integer',
  },
  // What each record of the source stated (snapshot/tables/stated-consents.ts).
  {
    after: 22,
    adds: 'table',
    name: 'stated',
    rowid: false,
    columns: `kind text not null, key text not null, id text not null, part text not null,
      says text not null, gone_at integer, primary key (kind, key, id, part)`,
  },
  {
    after: 22,
    adds: 'index',
    name: 'stated_opt_out',
    on: `stated (kind, id, part) where says = 'opt_out'`,
  },
  {
    after: 22,
    adds: 'index',
    name: 'stated_gone',
    on: 'stated (gone_at) where gone_at is not null',
  },
  // What an operator decided about a person who is not ours (snapshot/tables/unmanaged-people.ts).
  { after: 22, adds: 'column', table: 'problem', name: 'decided', type: 'text' },
  // The commands and events that were accepted (snapshot/tables/used-numbers.ts).
  {
    after: 22,
    adds: 'table',
    name: 'used_number',
    rowid: false,
    columns: 'number text primary key, expires_at integer not null',
  },
  // Which run began later, whatever the clock showed.
  { after: 22, adds: 'column', table: 'run', name: 'number', type: 'integer' },
  { after: 22, adds: 'index', name: 'run_by_number', on: 'run (number)' },
];

/** Returns the expansions that follow `version` migrations and that the database lacks. */
export function missingIn(
  db: Database.Database,
  version: number,
  steps: readonly Expansion[],
): Expansion[] {
  const columns = db.prepare("select 1 from pragma_table_info(?, 'main') where name = ?");
  const objects = db.prepare('select 1 from main.sqlite_master where type = ? and name = ?');
  return steps
    .filter(({ after }) => after === version)
    .filter((step) =>
      step.adds === 'column'
        ? columns.get(step.table, step.name) === undefined
        : objects.get(step.adds, step.name) === undefined,
    );
}

/** Adds these to the database. Call it within a transaction. */
export function expand(db: Database.Database, missing: readonly Expansion[]): void {
  for (const step of missing) db.exec(statementOf(step, 'main'));
}

/**
 * Hides the tables of a database that is only read behind temporary views and tables with what it
 * lacks, because queries name all columns. Returns whether there are any: SQLite knows no index of
 * a view, so a query must not demand one then.
 */
export function standInForMissing(
  db: Database.Database,
  version: number,
  steps: readonly Expansion[] = expansions,
): boolean {
  const missing = missingIn(db, version, steps);
  const columns = missing.filter((step) => step.adds === 'column');
  for (const [table, lacks] of Map.groupBy(columns, (step) => step.table)) {
    const empty = lacks.map(({ name }) => `null as ${name}`).join(', ');
    db.exec(`create temp view ${table} as select *, ${empty} from main.${table}`);
  }
  for (const step of missing) if (step.adds === 'table') db.exec(statementOf(step, 'temp'));
  return missing.length > 0;
}

function statementOf(step: Expansion, schema: 'main' | 'temp'): string {
  if (step.adds === 'column')
    return `alter table ${schema}.${step.table} add column ${step.name} ${step.type}`;
  if (step.adds === 'table') {
    const form = step.rowid === false ? ' without rowid' : '';
    return `create table ${schema}.${step.name} (${step.columns})${form}`;
  }
  return `create index ${schema}.${step.name} on ${step.on}`;
}
