import type Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';
import { expand, type Expansion, expansions, missingIn } from './expansions.ts';

/**
 * The steps that create the snapshot's tables. The number of steps applied to a file is its version
 * (`pragma user_version`), and an earlier program refuses a file of a later version. A released
 * step is never edited; a change is another step at the end. What an earlier program can live with
 * is added by an expansion instead (expansions.ts).
 */
export const migrations: readonly string[] = [
  `create table meta (name text primary key, value text not null) without rowid;
   insert into meta values ('name-key', lower(hex(randomblob(32))));

   create table recorded (
     kind text not null, key text not null,
     id text, ownership text not null, body text not null,
     shown text, desired text, seen_at integer not null,
     primary key (kind, key)
   ) without rowid;
   create index recorded_by_id on recorded (kind, id);

   create table origin (
     kind text not null, id text not null, key text not null,
     primary key (kind, id, key)
   ) without rowid;

   create table run (
     id text primary key, mode text not null, status text not null, plan text,
     started_at integer not null, ended_at integer, summary text
   ) without rowid;

   create table change (
     seq integer primary key, run text not null,
     kind text not null, key text not null, op text not null, part text not null,
     target text, body text not null, phase integer not null,
     state text not null, reason text, fix text,
     planned_at integer not null, sent_at integer, ended_at integer
   );
   create index change_by_run on change (run, kind, phase, key, state);
   create index change_by_key on change (kind, key);
   create index change_open on change (kind) where ended_at is null;

   create table problem (
     kind text not null, key text not null, class text not null, part text not null,
     reason text not null, fix text not null,
     desired text, attempts integer not null default 1, retry_at integer,
     since integer not null, run text not null,
     primary key (kind, key, class, part)
   ) without rowid;`,

  // The platform may reject a change for each of several contacts with one address. Existing
  // rejections do not show which contact they concern, so these changes are sent once more.
  `create table problem_new (
     kind text not null, key text not null, class text not null, part text not null,
     target text not null default '',
     reason text not null, fix text not null,
     desired text, attempts integer not null default 1, retry_at integer,
     since integer not null, run text not null,
     primary key (kind, key, class, part, target)
   ) without rowid;
   insert into problem_new
     select kind, key, class, part, '', reason, fix, desired, attempts, retry_at, since, run
     from problem;
   drop table problem;
   alter table problem_new rename to problem;`,

  // A person with a new address is looked up by the former one.
  'create index origin_by_key on origin (kind, key);',
  // These tables store absences, the changes that guards withheld, and their approvals.
  `create table absence (
     kind text not null, key text not null,
     first_at integer not null, last_at integer not null,
     readings integer not null, reading text not null,
     primary key (kind, key)
   ) without rowid;

   alter table change add column guard text;
   alter table change add column approved text;
   create index change_by_guard on change (guard, sent_at) where guard is not null;

   create table held (
     batch text not null, kind text not null, key text not null,
     op text not null, part text not null, target text not null, guard text not null,
     primary key (batch, kind, key, op, part, target)
   ) without rowid;
   create table held_plan (
     plan text primary key, batch text not null,
     mode text not null, at integer not null, current integer not null
   ) without rowid;
   create table approval (
     plan text primary key, at integer not null, ended_at integer
   ) without rowid;

   insert into meta
     select 'loaded', id from run
     where mode = 'full' and status in ('done', 'rejected')
       and coalesce(summary ->> '$.only', '') <> 'templates'
     order by started_at limit 1;`,

  // A record that awaits approval continues to do so when the count falls below the guard's limit.
  `create table standing (
     guard text not null, kind text not null, key text not null,
     primary key (guard, kind, key)
   ) without rowid;
   insert into standing
     select distinct h.guard, h.kind, h.key from held_plan s join held h on h.batch = s.batch
     where s.current;`,
  `create table twin (
     kind text not null, key text not null, id text not null, primary key (kind, key, id)
   ) without rowid;`,
  // Few changes are open at a time, compared with all the changes that a long run has planned.
  `drop index change_open;
   create index change_open on change (kind, seq) where state in ('sent', 'unknown');
   create index change_planned on change (kind) where state = 'planned';`,
  // A first load sends most changes of its week, and guards do not count them.
  `drop index change_by_guard;
   create index change_by_guard on change (guard, sent_at)
     where guard is not null and approved is null;`,
  'create index twin_by_id on twin (kind, id);',
  // This table stores the reports of opt-outs to the CRM (snapshot/tables/opt-out-reports.ts).
  `create table returned (
     seq integer primary key,
     kind text not null, key text not null, crm text not null, part text not null,
     id text not null, cause text not null, made_after integer, made_by integer not null,
     state text not null, reason text, fix text,
     attempts integer not null default 0, retry_at integer, run text,
     planned_at integer not null, sent_at integer, ended_at integer
   );
   create unique index returned_by_record on returned (kind, key, crm, part);
   create index returned_open on returned (kind, state, attempts, seq)
     where state not in ('acked', 'needless');`,
  // A change moves from state to state; without `state` the index is not rewritten each time.
  `drop index change_by_run;
   create index change_by_run on change (run, phase, kind, key);`,
  // A new decision is made for contacts with an opt-out of ours, to record who stated the opt-out.
  `update recorded set desired = null
   where kind = 'contact' and desired is not null and exists (
     select 1 from json_each(recorded.body, '$.channels') c
     where c.value ->> 'is' = 'opt_out' and c.value ->> 'by' = 'us');`,
  // The length of an absence is the sum of steps measured by the slower of two clocks. Earlier
  // versions used one clock and other defaults, so all absences are counted from zero.
  `drop table absence;
   create table absence (
     kind text not null, key text not null,
     first_at integer not null, last_at integer not null,
     readings integer not null, reading text not null,
     marked_at integer not null, marked_platform_at integer,
     age_ms integer not null, waited_ms integer,
     primary key (kind, key)
   ) without rowid;
   insert into meta
     select 'unsaid', 'absent' where exists (select 1 from recorded where kind = 'contact');`,
  // A stated opt-out awaits approval separately for each channel, and for a limited time, which
  // earlier versions did not store. An approval of a template covers the body that the plan showed.
  `create table standing_new (
     guard text not null, kind text not null, key text not null, part text not null default '',
     at integer, platform_at integer,
     primary key (guard, kind, key, part)
   ) without rowid;
   insert into standing_new (guard, kind, key) select guard, kind, key from standing;
   drop table standing;
   alter table standing_new rename to standing;
   alter table held add column body text not null default '';`,
  // This table contains the keys of contacts that were renamed on the platform, as the bodies list
  // them.
  `create table renamed (
     kind text not null, id text not null, key text not null, primary key (kind, id, key)
   ) without rowid;
   create index renamed_by_key on renamed (kind, key);
   insert or ignore into renamed
     select r.kind, c.value ->> 'id', r.key from recorded r, json_each(r.body, '$.renamed') c;
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
     end;`,
  // `since` is when a source id became known under a key; ids from earlier versions sort first.
  'alter table origin add column since integer not null default 0;',
  // Problems are grouped by cause. The next run sets the causes of those of earlier versions;
  // refused changes are not sent again, so their cause is set here.
  `alter table problem add column cause text not null default 'unknown';
   alter table problem add column about text not null default '';
   alter table problem add column option text;
   alter table problem add column value text;
   alter table problem add column place text;
   alter table problem add column crm text;
   update problem set about = reason;
   update problem set cause = iif(retry_at is null, 'platform-refused', 'opt-out-refused')
     where desired is not null;`,
  // A person decides about a plan, or about a part of it: `whole` is the plan that it is a part of.
  // People who are not recorded yet are found by the source's ids with which a plan shows them.
  `alter table held_plan add column whole text;
   alter table held add column ids text not null default '[]';
   alter table approval add column decided_by text;
   alter table approval add column reason text;
   create table rejection (
     plan text primary key, at integer not null, decided_by text not null, reason text not null
   ) without rowid;`,
  // What is not in the audit log yet. Ids are never used again: they tell what the log has already.
  `alter table change add column why text;
   alter table run add column asked text;
   create table unaudited (
     id integer primary key autoincrement, writer text not null, at integer not null,
     change integer, outcome text, status integer, request text, key text, entry text
   );`,
  // Who signed the approval of a plan or a part. The configuration tells how many are needed.
  `create table approval_signature (
     plan text not null, name text not null, at integer not null, reason text,
     signature text not null, primary key (plan, name)
   ) without rowid;`,
  // The history that plots are drawn from (snapshot/tables/run-figures.ts).
  `create table run_figures (
     run text primary key, at integer not null, mode text not null, ms integer not null,
     requests integer not null, refused integer not null, used real, proof_ms integer,
     changed integer not null, changes text not null, people text
   ) without rowid;
   create index run_figures_by_at on run_figures (at);
   create table opt_out_day (
     day text not null, origin text not null, n integer not null, primary key (day, origin)
   ) without rowid;`,
  // What a change overwrote, so that `undo` can bring it back.
  'alter table change add column before text;',
];

/**
 * Brings the tables of a database up to date: by the migrations, each after the expansions that
 * were there before it, and by the expansions after the last. Throws Invalid for a newer version.
 */
export function migrate(
  db: Database.Database,
  path: string,
  steps: readonly Expansion[] = expansions,
): void {
  if (isCurrent(db, path, steps)) return;
  db.transaction(() => {
    // The version is read again, because another process may have migrated the file in the
    // meantime.
    const version = versionOf(db, path);
    for (const [at, step] of migrations.entries()) {
      if (at < version) continue;
      expand(db, missingIn(db, at, steps));
      db.exec(step);
    }
    expand(db, missingIn(db, migrations.length, steps));
    db.pragma(`user_version = ${migrations.length}`);
  }).exclusive();
}

function isCurrent(db: Database.Database, path: string, steps: readonly Expansion[]): boolean {
  if (versionOf(db, path) < migrations.length) return false;
  return missingIn(db, migrations.length, steps).length === 0;
}

/** Returns how many migrations were applied to a database. Throws Invalid for a newer version. */
export function versionOf(db: Database.Database, path: string): number {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version <= migrations.length) return version;
  throw new Invalid(
    `${path}: this snapshot was written by a newer version of crm-mirror ` +
      `(format ${version}, this one knows ${migrations.length})`,
    { fix: 'run that version, or restore an older backup' },
  );
}
