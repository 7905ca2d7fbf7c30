user_version 1
CREATE INDEX change_by_guard on change (guard, sent_at)
    where guard is not null and approved is null;
CREATE INDEX change_by_key on change (kind, key);
CREATE INDEX change_by_run on change (run, phase, kind, key);
CREATE INDEX change_open on change (kind, seq) where state in ('sent', 'unknown');
CREATE INDEX change_planned on change (kind) where state = 'planned';
CREATE INDEX hold_by_key on hold (kind, key);
CREATE INDEX hold_decided on hold (decision) where decision is not null;
CREATE INDEX hold_ended on hold (ended_at) where ended_at is not null;
CREATE INDEX hold_open on hold (guard, key) where ended_at is null;
CREATE INDEX listed_by_hold on listed (hold);
CREATE INDEX origin_by_key on origin (kind, key);
CREATE INDEX recorded_by_id on recorded (kind, id);
CREATE INDEX renamed_by_key on renamed (kind, key);
CREATE UNIQUE INDEX returned_by_record on returned (kind, key, crm, part);
CREATE INDEX returned_open on returned (kind, state, attempts, seq)
    where state not in ('acked', 'needless');
CREATE INDEX run_by_number on run (number, started_at, id, mode, status);
CREATE INDEX run_figures_by_at on run_figures (at);
CREATE INDEX stated_gone on stated (gone_at) where gone_at is not null;
CREATE INDEX stated_opt_out on stated (kind, id, part) where says = 'opt_out';
CREATE INDEX stated_was_in on stated (kind, key) where was_in is not null;
CREATE INDEX twin_by_id on twin (kind, id);
CREATE TABLE absence (
    kind text not null, key text not null,
    first_at integer not null, last_at integer not null,
    readings integer not null, reading text not null,
    marked_at integer not null, marked_platform_at integer,
    age_ms integer not null, waited_ms integer,
    primary key (kind, key)
  ) without rowid;
CREATE TABLE approval_signature (
    decision text not null, name text not null, at integer not null, reason text,
    signature text not null, number integer not null, primary key (decision, name)
  ) without rowid;
CREATE TABLE change (
    seq integer primary key, run text not null,
    kind text not null, key text not null, op text not null, part text not null,
    target text, body text not null, phase integer not null,
    state text not null, reason text, fix text,
    planned_at integer not null, sent_at integer, ended_at integer,
    guard text, approved text, why text, before text, approvals_given integer
  );
CREATE TABLE decision (
    id text primary key, plan text not null, verdict text not null, at integer not null,
    decided_by text not null, reason text, number integer not null, ended_at integer
  ) without rowid;
CREATE TABLE held_plan (
    plan text primary key, number integer not null, at integer not null, undoes text
  ) without rowid;
CREATE TABLE hold (
    id integer primary key, guard text not null, kind text not null, key text not null,
    op text not null, part text not null, target text not null, body text not null,
    ids text not null, stated integer not null, withdraws integer not null, undoes text not null,
    is_listed integer not null, wanted integer not null default 1,
    at integer not null, platform_at integer, decision text, ended_at integer
  );
CREATE TABLE listed (
    list text not null, hold integer not null, primary key (list, hold)
  ) without rowid;
CREATE TABLE meta (name text primary key, value text not null) without rowid;
CREATE TABLE opt_out_day (
    day text not null, origin text not null, n integer not null, primary key (day, origin)
  ) without rowid;
CREATE TABLE origin (
    kind text not null, id text not null, key text not null, since integer not null default 0,
    primary key (kind, id, key)
  ) without rowid;
CREATE TABLE problem (
    kind text not null, key text not null, class text not null, part text not null,
    target text not null default '', reason text not null, fix text not null,
    desired text, attempts integer not null default 1, retry_at integer,
    since integer not null, run text not null,
    cause text not null, about text not null default '',
    option text, value text, place text, crm text, decided text,
    primary key (kind, key, class, part, target)
  ) without rowid;
CREATE TABLE recorded (
    kind text not null, key text not null,
    id text, ownership text not null, body text not null,
    shown text, desired text, seen_at integer not null,
    primary key (kind, key)
  ) without rowid;
CREATE TABLE renamed (
    kind text not null, id text not null, key text not null, primary key (kind, id, key)
  ) without rowid;
CREATE TABLE returned (
    seq integer primary key,
    kind text not null, key text not null, crm text not null, part text not null,
    id text not null, cause text not null, made_after integer, made_by integer not null,
    state text not null, reason text, fix text,
    attempts integer not null default 0, retry_at integer, run text,
    planned_at integer not null, sent_at integer, ended_at integer
  );
CREATE TABLE route_figures (
    at integer not null, route text not null, sent real not null, most integer not null,
    window_ms integer not null, primary key (at, route)
  ) without rowid;
CREATE TABLE run (
    id text primary key, mode text not null, status text not null, plan text,
    started_at integer not null, ended_at integer, summary text, asked text, number integer
  ) without rowid;
CREATE TABLE run_figures (
    run text primary key, at integer not null, mode text not null, ms integer not null,
    requests integer not null, refused integer not null, used real, proof_ms integer,
    changed integer not null, changes text not null, people text
  ) without rowid;
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE stated (
    kind text not null, key text not null, id text not null, part text not null,
    says text not null, gone_at integer, stated_by text, was_in integer,
    primary key (kind, key, id, part)
  ) without rowid;
CREATE TABLE twin (
    kind text not null, key text not null, id text not null, primary key (kind, key, id)
  ) without rowid;
CREATE TABLE unaudited (
    id integer primary key autoincrement, writer text not null, at integer not null,
    change integer, outcome text, status integer, request text, key text, entry text
  );
CREATE TABLE used_number (
    number text primary key, expires_at integer not null
  ) without rowid;
CREATE TRIGGER renamed_away after insert on recorded
    when instr(new.body, '"renamed"') or exists (
      select 1 from renamed where kind = new.kind and key = new.key)
    begin
      delete from renamed where kind = new.kind and key = new.key;
      insert or ignore into renamed
        select new.kind, c.value ->> 'id', new.key from json_each(new.body, '$.renamed') c;
    end;
CREATE TRIGGER renamed_no_more after delete on recorded
    begin
      delete from renamed where kind = old.kind and key = old.key;
    end
