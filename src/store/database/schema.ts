/** The snapshot's tables, and how a file of a released version is brought up to date. */
import { hash } from 'node:crypto';
import type Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';
import { hasHeader } from './snapshot-folder.ts';

/** Creates all tables; the file has version 1 then (`pragma user_version`). */
const schema = `
  create table meta (name text primary key, value text not null) without rowid;
  insert into meta values ('name-key', lower(hex(randomblob(32))));

  create table recorded (
    kind text not null, key text not null,
    id text, ownership text not null, body text not null,
    shown text, desired text, seen_at integer not null,
    primary key (kind, key)
  ) without rowid;
  create index recorded_by_id on recorded (kind, id);

  -- 'since' is when a source id became known under a key.
  create table origin (
    kind text not null, id text not null, key text not null, since integer not null default 0,
    primary key (kind, id, key)
  ) without rowid;
  -- A person with a new address is looked up by the former one.
  create index origin_by_key on origin (kind, key);

  create table twin (
    kind text not null, key text not null, id text not null, primary key (kind, key, id)
  ) without rowid;
  create index twin_by_id on twin (kind, id);

  -- The keys of contacts that were renamed on the platform, as the bodies list them.
  create table renamed (
    kind text not null, id text not null, key text not null, primary key (kind, id, key)
  ) without rowid;
  create index renamed_by_key on renamed (kind, key);
  create trigger renamed_away after insert on recorded
    when instr(new.body, '"renamed"') or exists (
      select 1 from renamed where kind = new.kind and key = new.key)
    begin
      delete from renamed where kind = new.kind and key = new.key;
      insert or ignore into renamed
        select new.kind, c.value ->> 'id', new.key from json_each(new.body, '$.renamed') c;
    end;
  create trigger renamed_no_more after delete on recorded
    begin
      delete from renamed where kind = old.kind and key = old.key;
    end;

  -- What each record of the source stated, and by which fields (tables/stated-consents.ts).
  create table stated (
    kind text not null, key text not null, id text not null, part text not null,
    says text not null, gone_at integer, stated_by text, was_in integer,
    primary key (kind, key, id, part)
  ) without rowid;
  create index stated_opt_out on stated (kind, id, part) where says = 'opt_out';
  create index stated_was_in on stated (kind, key) where was_in is not null;
  create index stated_gone on stated (gone_at) where gone_at is not null;

  -- The length of an absence is the sum of steps measured by the slower of two clocks.
  create table absence (
    kind text not null, key text not null,
    first_at integer not null, last_at integer not null,
    readings integer not null, reading text not null,
    marked_at integer not null, marked_platform_at integer,
    age_ms integer not null, waited_ms integer,
    primary key (kind, key)
  ) without rowid;

  -- 'number' tells which run began later, whatever the clock showed.
  create table run (
    id text primary key, mode text not null, status text not null, plan text,
    started_at integer not null, ended_at integer, summary text, asked text, number integer
  ) without rowid;
  create index run_by_number on run (number, started_at, id, mode, status);

  -- The history that plots are drawn from (store/tables/run-figures.ts).
  create table run_figures (
    run text primary key, at integer not null, mode text not null, ms integer not null,
    requests integer not null, refused integer not null, used real, proof_ms integer,
    changed integer not null, changes text not null, people text
  ) without rowid;
  create index run_figures_by_at on run_figures (at);
  -- 'sent' and 'most' are requests in a window of the route: what the run used, and its limit.
  create table route_figures (
    at integer not null, route text not null, sent real not null, most integer not null,
    window_ms integer not null, primary key (at, route)
  ) without rowid;
  create table opt_out_day (
    day text not null, origin text not null, n integer not null, primary key (day, origin)
  ) without rowid;

  -- 'before' is what a change overwrote, so that 'undo' can bring it back; 'approvals_given' is how
  -- many approvals and signatures had been given by then (store/tables/journal.ts).
  create table change (
    seq integer primary key, run text not null,
    kind text not null, key text not null, op text not null, part text not null,
    target text, body text not null, phase integer not null,
    state text not null, reason text, fix text,
    planned_at integer not null, sent_at integer, ended_at integer,
    guard text, approved text, why text, before text, approvals_given integer
  );
  -- A change moves from state to state; without 'state' this index is not rewritten each time.
  create index change_by_run on change (run, phase, kind, key);
  create index change_by_key on change (kind, key);
  -- Few changes are open at a time, compared with all the changes that a long run has planned.
  create index change_open on change (kind, seq) where state in ('sent', 'unknown');
  create index change_planned on change (kind) where state = 'planned';
  -- A first load sends most changes of its week, and guards do not count them.
  create index change_by_guard on change (guard, sent_at)
    where guard is not null and approved is null;

  -- Problems are grouped by cause; 'decided' is what an operator decided about a person who is not
  -- ours (store/tables/known-problems.ts).
  create table problem (
    kind text not null, key text not null, class text not null, part text not null,
    target text not null default '', reason text not null, fix text not null,
    desired text, attempts integer not null default 1, retry_at integer,
    since integer not null, run text not null,
    cause text not null, about text not null default '',
    option text, value text, place text, crm text, decided text,
    primary key (kind, key, class, part, target)
  ) without rowid;

  -- The changes that await a decision, and the latest one about each (store/holds). People who are
  -- not recorded yet are found by 'ids', those of the source. 'stated' tells whether the CRM stated
  -- it, or the mirror concluded it, 'withdraws' whether it withdraws an opt-out that the CRM had
  -- stated; 'undoes' is the run that it undoes, or ''; 'is_listed' tells whether a run has planned
  -- it that listed the platform, and 'wanted' whether the last run that could tell has.
  create table hold (
    id integer primary key, guard text not null, kind text not null, key text not null,
    op text not null, part text not null, target text not null, body text not null,
    ids text not null, stated integer not null, withdraws integer not null, undoes text not null,
    is_listed integer not null, wanted integer not null default 1,
    at integer not null, platform_at integer, decision text, ended_at integer
  );
  create index hold_by_key on hold (kind, key);
  create index hold_open on hold (guard, key) where ended_at is null;
  create index hold_decided on hold (decision) where decision is not null;
  create index hold_ended on hold (ended_at) where ended_at is not null;
  create table listed (
    list text not null, hold integer not null, primary key (list, hold)
  ) without rowid;
  create index listed_by_hold on listed (hold);
  create table held_plan (
    plan text primary key, number integer not null, at integer not null, undoes text
  ) without rowid;
  create table decision (
    id text primary key, plan text not null, verdict text not null, at integer not null,
    decided_by text not null, reason text, number integer not null, ended_at integer
  ) without rowid;
  create table approval_signature (
    decision text not null, name text not null, at integer not null, reason text,
    signature text not null, number integer not null, primary key (decision, name)
  ) without rowid;

  -- The reports of opt-outs to the CRM (store/tables/opt-out-reports.ts).
  create table returned (
    seq integer primary key,
    kind text not null, key text not null, crm text not null, part text not null,
    id text not null, cause text not null, made_after integer, made_by integer not null,
    state text not null, reason text, fix text,
    attempts integer not null default 0, retry_at integer, run text,
    planned_at integer not null, sent_at integer, ended_at integer
  );
  create unique index returned_by_record on returned (kind, key, crm, part);
  create index returned_open on returned (kind, state, attempts, seq)
    where state not in ('acked', 'needless');

  -- What is not in the audit log yet. Ids are never used again: they tell what the log has already.
  create table unaudited (
    id integer primary key autoincrement, writer text not null, at integer not null,
    change integer, outcome text, status integer, request text, key text, entry text
  );
  -- The commands and events that were accepted (store/tables/used-numbers.ts).
  create table used_number (
    number text primary key, expires_at integer not null
  ) without rowid;
`;

/**
 * What `pragma application_id` tells of a file that has these tables: a file of a checkout in which
 * they were others is refused. Comments and spaces may change.
 */
const statements = schema.replaceAll(/--.*/g, '').replaceAll(/\s+/g, ' ');
const ours = Number.parseInt(hash('sha256', statements).slice(0, 7), 16);

/**
 * The steps from one version to the next; the first one leads from 1 to 2. A released step is never
 * edited, and `schema` stays as it was released: a new file takes all steps, too.
 */
const migrations: readonly string[] = [];

/**
 * Creates the tables of an empty database, or brings those of an earlier version up to date. Throws
 * Invalid for a file that has other tables, or those of a newer version.
 */
export function migrate(db: Database.Database, path: string, steps = migrations): void {
  if (isCurrent(db, path, steps)) return;
  db.transaction(() => {
    // The version is read again, because another process may have written the file meanwhile.
    const version = versionOf(db, path, steps);
    if (version === 0) {
      db.exec(schema);
      db.pragma(`application_id = ${ours}`);
    }
    for (const step of steps.slice(Math.max(0, version - 1))) db.exec(step);
    db.pragma(`user_version = ${1 + steps.length}`);
  }).exclusive();
}

/** Returns whether a database has the newest tables; throws Invalid as `migrate` does. */
export function isCurrent(db: Database.Database, path: string, steps = migrations): boolean {
  return versionOf(db, path, steps) === 1 + steps.length;
}

/** Returns whether the header of a database, which may be damaged, names these tables. */
export function hasOurHeader(header: Buffer): boolean {
  return hasHeader(header) && header.readInt32BE(68) === ours;
}

/** Returns the version of a database, 0 if it is empty. Throws Invalid as `migrate` does. */
export function versionOf(db: Database.Database, path: string, steps = migrations): number {
  // One statement sees one state of a file that another process creates meanwhile.
  const [{ version, id, tables } = { version: 0, id: 0, tables: 0 }] = db
    .prepare<[], Record<'version' | 'id' | 'tables', number>>(
      `select user_version as version, application_id as id, (select count(*) from sqlite_schema)
         as tables from pragma_user_version, pragma_application_id`,
    )
    .all();
  if (version === 0 && tables > 0) {
    throw new Invalid(`${path}: this is the database of another program`, {
      fix: 'write another path into snapshot',
    });
  }
  if (version > 0 && id !== ours)
    throw new Invalid(`${path}: is no snapshot of this version of crm-mirror`, {
      fix:
        'keep the memory beside it, move the snapshot away, and run `crm-mirror sync`, ' +
        'which finds its people on the platform again and deletes nothing',
    });
  if (version <= 1 + steps.length) return version;
  throw new Invalid(
    `${path}: this snapshot was written by a newer version of crm-mirror ` +
      `(format ${version}, this one knows ${1 + steps.length})`,
    { fix: 'run that version, or restore an older backup' },
  );
}
