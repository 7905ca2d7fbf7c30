import { addingIn, type Desired } from './desired-staging.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { inRange, isStaged, type KeyRange } from '../database/key-range.ts';

interface StoredDesired extends Omit<DesiredRow, 'wants' | 'invalid' | 'key'> {
  key: string;
  seq: number;
  wants: number;
  reason: string | null;
  fix: string | null;
  cause: ProblemCause | null;
  about: string | null;
  option: string | null;
  value: string | null;
  no_address: number | null;
  may_opt_out: number | null;
  /** Whether the same record is also staged under its own key. */
  again: number;
}

export function desiredIn(db: Statements): Desired {
  return {
    ...addingIn(db),
    ...namingIn(db),
    ...addresslessIn(db),
    ...sharedIn(db),
    ...readingIn(db),
  };
}

function namingIn(db: Statements): Pick<Desired, 'nameByOrigin'> {
  const named = db.prepare<{ kind: string; count: number }>(
    `insert into temp.staged
       (kind, key, seq, id, place, form,
       reason, fix, cause, about, option, value, no_address, may_opt_out, again)
     select d.kind, o.key, @count + row_number() over (), d.id, min(d.place), d.form,
       d.reason, d.fix, d.cause, d.about, d.option, d.value, d.no_address, d.may_opt_out,
       d.key <> ''
     from temp.staged d indexed by staged_invalid join origin o on o.kind = d.kind and o.id = d.id
     where d.kind = @kind and d.reason is not null and d.id <> '' and d.key <> o.key
       and (d.key = '' or not exists (
         select 1 from temp.staged e where e.kind = d.kind and e.key = o.key))
     group by d.id, o.key, d.key = '', iif(d.key = '', d.seq, d.form)`,
  );
  const nameless = db.prepare<{ kind: string }>(
    `delete from temp.staged where kind = @kind and key = '' and id <> '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = staged.id)`,
  );
  const strangers = db.prepare<{ kind: string }>(
    `delete from temp.strange where kind = @kind and key = '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = strange.id)`,
  );
  return {
    nameByOrigin(kind, count) {
      named.run({ kind, count });
      nameless.run({ kind });
      strangers.run({ kind });
    },
  };
}

function addresslessIn(db: Statements): Pick<Desired, 'skipUnknown' | 'countAddressless'> {
  const skip = db.prepare<{ kind: string }>(
    `delete from temp.staged
     where kind = @kind and key = '' and no_address and reason is not null`,
  );
  const count = db.prepare<{ kind: string }, { n: number }>(
    `select count(distinct s.key) n from temp.staged s indexed by staged_invalid
     where s.kind = @kind and s.reason is not null and s.no_address is not null and s.key <> ''
       and exists (select 1 from recorded r where r.kind = s.kind and r.key = s.key)
       and not exists (
         select 1 from temp.staged e
         where e.kind = s.kind and e.key = s.key and e.no_address is null)`,
  );
  return {
    skipUnknown: (kind) => skip.run({ kind }).changes,
    countAddressless: (kind) => count.get({ kind })?.n ?? 0,
  };
}

type SharedPart = Pick<Desired, 'noteStrange' | 'findSharedIds' | 'invalidateSharedIds'>;

function sharedIn(db: Statements): SharedPart {
  const isStrange = `id <> '' and not exists (
    select 1 from origin o indexed by origin_by_key
    where o.kind = s.kind and o.key = s.key and o.id = s.id)`;
  const strange = db.prepare<KeyRange & { kind: string }>(
    `insert or ignore into temp.strange (kind, id, key)
     select kind, id, key from temp.staged s
     where ${inRange('s')} and ${isStrange}`,
  );
  const keyless = db.prepare<[string]>(
    `insert or ignore into temp.strange (kind, id, key)
     select kind, id, key from temp.staged where kind = ? and key = '' and id <> ''`,
  );
  const ofSeveral = (of: string): string => `
    insert or ignore into temp.shared (kind, id)
    select a.kind, a.id from ${of} a
    where ${inRange('a', 'id')}
    group by a.id having `;
  const sharedStrange = db.prepare<KeyRange & { kind: string }>(
    `${ofSeveral('temp.strange')} count(*) > 1 or exists (
       select 1 from origin o where o.kind = a.kind and o.id = a.id and ${isStaged('o')})`,
  );
  const sharedKnown = db.prepare<KeyRange & { kind: string }>(
    `${ofSeveral('origin')} count(*) > 1 and (
       select count(*) from origin o
       where o.kind = a.kind and o.id = a.id and ${isStaged('o')}) > 1`,
  );
  const invalidate = db.prepare<{ kind: string; cause: string; reason: string; fix: string }>(
    `update temp.staged set reason = @reason, fix = @fix, cause = @cause,
       about = null, option = null, value = null, no_address = null
     where kind = @kind and key in (
         select s.key from temp.shared h
           cross join temp.strange s on s.kind = h.kind and s.id = h.id
         where h.kind = @kind
         union
         select o.key from temp.shared h cross join origin o on o.kind = h.kind and o.id = h.id
         where h.kind = @kind)
       and id in (select id from temp.shared where kind = @kind)`,
  );
  return {
    noteStrange: (kind, range) =>
      void (range === 'keyless' ? keyless.run(kind) : strange.run({ kind, ...range })),
    findSharedIds(kind, range) {
      sharedStrange.run({ kind, ...range });
      sharedKnown.run({ kind, ...range });
    },
    invalidateSharedIds: (kind, fault) => void invalidate.run({ kind, ...fault }),
  };
}

type ReadingPart = Pick<
  Desired,
  'desired' | 'idsOf' | 'keysOf' | 'countDesired' | 'wantedKeys' | 'countInvalid' | 'invalid'
>;

function readingIn(db: Statements): ReadingPart {
  const ofKey = db.prepare<[string, string], StoredDesired>(
    'select * from temp.desired where kind = ? and key = ? order by seq',
  );
  const idsOf = db.prepare<[string, string], { id: string }>(
    `select distinct id from temp.staged where kind = ? and key = ? and id <> ''`,
  );
  const keysOf = db.prepare<[string, string], { key: Key }>(
    `select distinct key from temp.stands
     where kind = ? and id in (select value from json_each(?)) and key <> ''`,
  );
  const count = db.prepare<KeyRange & { kind: string }, { valid: number; wanted: number }>(
    `select coalesce(sum(valid), 0) valid, coalesce(sum(wanted), 0) wanted from (
       select max(reason is null) valid, max(reason is null and wants) wanted from temp.desired
       where ${inRange('desired')} group by key)`,
  );
  const wanted = db.prepare<KeyRange & { kind: string }, { key: Key }>(
    `select key from temp.desired
     where ${inRange('desired')} group by key having max(reason is null and wants)`,
  );
  const countInvalid = db.prepare<[string], { n: number }>(
    `select count(distinct place) n from temp.staged indexed by staged_invalid
     where kind = ? and reason is not null`,
  );
  const invalid = db.prepare<[string, number, number], StoredDesired>(
    `select * from temp.desired
     where kind = ? and seq > ? and reason is not null and not again order by seq limit ?`,
  );
  return {
    desired: (kind, key) => ofKey.all(kind, key).map(fromStored),
    idsOf: (kind, key) => idsOf.all(kind, key).map(({ id }) => id),
    keysOf: (kind, ids) => keysOf.all(kind, JSON.stringify(ids)).map(({ key }) => key),
    countDesired: (kind, range) => count.get({ kind, ...range }) ?? { valid: 0, wanted: 0 },
    wantedKeys: (kind, range) => wanted.all({ kind, ...range }).map(({ key }) => key),
    countInvalid: (kind) => countInvalid.get(kind)?.n ?? 0,
    invalid: (kind, after, most) =>
      invalid.all(kind, after, most).map((row) => ({ ...fromStored(row), row: row.seq })),
  };
}

function fromStored({
  reason,
  fix,
  key,
  wants,
  again: _,
  seq: _seq,
  cause,
  about,
  option,
  value,
  no_address: noAddress,
  may_opt_out: mayOptOut,
  ...row
}: StoredDesired): DesiredRow {
  const invalid = reason === null ? undefined : { reason, fix: fix ?? '' };
  return {
    ...row,
    key: key === '' ? undefined : key,
    wants: wants === 1,
    invalid: invalid && {
      ...invalid,
      ...(cause !== null && { cause }),
      ...(about !== null && { about }),
      ...(option !== null && { option }),
      ...(value !== null && { value }),
      ...(noAddress !== null && { noAddress: noAddress === 1 }),
      ...(mayOptOut !== null && { mayOptOut: true }),
    },
  };
}
