user_version 1
CREATE UNIQUE INDEX entry_standing on entry (address, part, cause, contact)
    where ended_at is null;
CREATE TABLE bearer (
    id text not null, entry integer not null references entry (seq), primary key (id, entry)
  ) without rowid;
CREATE TABLE entry (
    seq integer primary key,
    address text not null, part text not null, cause text not null,
    contact text not null, made_after integer, made_by integer not null,
    ended_at integer, ended text
  );
CREATE TABLE meta (name text primary key, value text not null) without rowid
