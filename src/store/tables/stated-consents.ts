/**
 * Stores what each record of the source last stated for each part, whether or not the platform has
 * a contact for it. Without it, nobody would know that a record which opts in today had opted out
 * before, if that person was never created (engine/judge/guard-counts.ts).
 *
 *   an opt-out          is stored at once
 *   one that cannot     is stored, too, and replaces no opt-out. It counts until the records are
 *   be read             read in another way, which may have named its meaning
 *   an opt-in, or       is stored, but replaces an opt-out of the record, under this or a former
 *   no opinion          address, only once the person is recorded as opted in
 *   stated_by           is the fields that stated an opt-out, or the hash of the mapping by which
 *                       it could not be read
 *   a record is gone    its rows are marked with the time, and deleted after `keep`
 *   an incomplete       stores opt-outs only: nothing else is certain, and another change that it
 *   or limited reading  stored would be no news to the run that acts on it; `was_in` marks those
 *                       that replaced an opt-in, until a run has acted on all records
 */
import type { Statements } from '../database/prepared-statements.ts';
import type { Key } from '../../domain/record.ts';
import { inRange, type RecordName, type RecordRange } from '../database/key-range.ts';

interface StoredReading {
  but: readonly Key[];
  /** Whether the records are as the source has them, and the run acts on all of them. */
  certified: boolean;
  /** Whether a record that is not staged is gone. */
  whole: boolean;
  /** Whether only records that were not found unchanged are staged. */
  ofRest: boolean;
  at: number;
  /** The hash of the mapping by which they were read. */
  mapping: string;
}

/** The person is recorded as opted in. */
const isIn = (key: string, part: string): string => `exists (
  select 1 from recorded r, json_each(r.body, '$.channels') m
  where r.kind = @kind and r.key = ${key} and m.key = ${part} and m.value ->> '$.is' = 'opt_in')`;

/** A value that cannot be read may opt out of the channel. */
const isUnread = `c.key in (select value from json_each(d.body, '$.unread'))`;

/** The fields that state an opt-out of a channel. */
const outBy = (form: string, part: string): string => `iif(${form}.body ->> '$.outBy' is null, null,
  (select b.value from json_each(${form}.body, '$.outBy') b where b.key = ${part}.key))`;

/** Is false where all that a record states is stored already, as of nearly every record. */
const isNews = `exists (
  select 1 from temp.desired e, json_each(e.body, '$.channels') p
  where e.kind = d.kind and e.key = d.key and e.id = d.id and (
    e.body ->> '$.unread' is not null or not exists (
      select 1 from stated o
      where o.kind = e.kind and o.key = e.key and o.id = e.id and o.part = p.key
        and o.says = coalesce(p.value, 'none') and o.stated_by is ${outBy('e', 'p')}
        and o.gone_at is null)))`;

/** Selects what the staged records of a range newly state, without the keys in `but`. */
const statements = (which: string): string => `
  select d.kind, d.key, d.id, c.key,
    max(iif(${isUnread}, 'unread', coalesce(c.value, 'none'))),
    iif(${isUnread}, @mapping, ${outBy('d', 'c')})
  from temp.desired d, json_each(d.body, '$.channels') c
  where ${inRange('d')} and d.key not in (select value from json_each(@but)) and ${isNews}
    and ${which}
  group by d.key, d.id, c.key`;

const columns = 'kind, key, id, part, says, stated_by';

/** The statements of the source's records, by record and part. */
export function statedConsentsIn(db: Statements) {
  const optedOutBefore = `exists (
    select 1 from stated o indexed by stated_opt_out
    where o.kind = d.kind and o.id = d.id and o.part = c.key and o.says = 'opt_out'
      and o.key <> d.key)`;
  const mayReplace = `d.presence = 'present' and d.reason is null
    and (not ${optedOutBefore} or ${isIn('d.key', 'c.key')})`;
  const isOut = `(c.value = 'opt_out' or ${isUnread})`;
  const keeps = `excluded.says <> 'opt_out' and (says = 'opt_out'
      or says = 'unread' and excluded.says <> 'unread' and stated_by = @mapping)
    and not ${isIn('stated.key', 'stated.part')}`;
  const set = ['says', 'stated_by'].map((one) => `${one} = iif(${keeps}, ${one}, excluded.${one})`);
  const storeAll = db.run<RecordRange & StoredReading>(
    `insert into stated (${columns}) ${statements(`(${isOut} or (${mayReplace}))`)}
     on conflict (kind, key, id, part) do update set gone_at = null, ${set.join(', ')}
     where gone_at is not null or says <> excluded.says or stated_by is not excluded.stated_by`,
  );
  const storeOptOuts = db.run<RecordRange & StoredReading>(
    `insert into stated (${columns}) ${statements(isOut)}
     on conflict (kind, key, id, part) do update
       set says = excluded.says, stated_by = excluded.stated_by,
         was_in = iif(says = 'opt_in' and excluded.says = 'opt_out', 1, was_in)
       where says <> 'opt_out'`,
  );
  const markGoneIn = (people: string) =>
    db.run<RecordRange & { at: number }>(
      `update stated set gone_at = @at where ${people} and gone_at is null
         and not exists (
           select 1 from temp.staged s
           where s.kind = stated.kind and s.key = stated.key and s.id = stated.id)`,
    );
  const markGone = markGoneIn(inRange('stated'));
  const markGoneOfRest = markGoneIn(
    `kind = @kind and key in (select u.key from temp.rest u where ${inRange('u')})`,
  );
  return {
    /** The parts that these ids, or this key, have opted out of, or may have by the mapping. */
    optOutsOf: db.values<RecordName & { ids: readonly string[]; mapping: string }, string>(
      `select part from stated where kind = @kind and key = @key
         and (says = 'opt_out' or says = 'unread' and stated_by = @mapping)
       union
       select s.part from json_each(@ids) i
         cross join stated s indexed by stated_opt_out
           on s.kind = @kind and s.id = i.value and s.says = 'opt_out'
       where not exists (
         select 1 from stated o
         where o.kind = s.kind and o.key = @key and o.id = s.id and o.part = s.part)`,
    ),
    newKeys: db.values<RecordRange, Key>(
      `select distinct key from temp.staged s where ${inRange('s')}
         and not exists (select 1 from stated o where o.kind = s.kind and o.key = s.key)`,
    ),
    store(range: RecordRange, reading: StoredReading): void {
      const { certified, whole, ofRest, at } = reading;
      (certified ? storeAll : storeOptOuts)({ ...range, ...reading });
      if (certified && whole) (ofRest ? markGoneOfRest : markGone)({ ...range, at });
    },
    /** Returns whether an incomplete or limited reading has replaced an opt-in by an opt-out. */
    isAnyTurned: db.has<[]>('select 1 from stated where was_in is not null limit 1'),
    /** Forgets of a range that such a reading has. */
    settleTurned: db.run<RecordRange>(
      `update stated set was_in = null where ${inRange('stated')} and was_in is not null`,
    ),
    /** Deletes what records stated that have been gone since before this time. */
    prune: db.run<[before: number]>('delete from stated where gone_at < ?'),
  };
}
