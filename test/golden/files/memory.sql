user_version 1
CREATE INDEX audit_but_writes on audit (seq) where body not like '["w"%';
CREATE INDEX audit_by_person on audit (person) where person is not null;
CREATE INDEX audit_by_run on audit (
  case when json_valid(body) then body ->> 2 else 0 end) where body like '["w"%';
CREATE UNIQUE INDEX do_not_contact_standing on do_not_contact (address, part, cause, contact)
    where ended_at is null;
CREATE UNIQUE INDEX person_by_lookup on person (lookup) where lookup is not null;
CREATE INDEX request_by_person on request (person) where person is not null;
CREATE TABLE audit (
    seq integer primary key, person integer, body text not null, hash blob not null
  );
CREATE TABLE bearer (
    id text not null, entry integer not null references do_not_contact (seq),
    primary key (id, entry)
  ) without rowid;
CREATE TABLE checkpoint (
    seq integer primary key, hash blob not null, at integer not null,
    public_key text not null, signature blob not null
  );
CREATE TABLE do_not_contact (
    seq integer primary key,
    address text not null, part text not null, cause text not null,
    contact text not null, made_after integer, made_by integer not null, note text,
    ended_at integer, ended text
  );
CREATE TABLE meta (name text primary key, value text not null) without rowid;
CREATE TABLE person (id integer primary key, mark blob not null, lookup blob, key blob);
CREATE TABLE reached (writer text primary key, id integer not null) without rowid;
CREATE TABLE request (
    id integer primary key, at integer not null, run text, route text not null, status integer,
    attempt integer not null, ms integer not null, size integer, rows integer,
    person blob, contact blob, content blob not null);
CREATE TABLE run (id text primary key, seq integer not null) without rowid
