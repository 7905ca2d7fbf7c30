/**
 * The do-not-contact list: the facts to remember about people whose record is gone. It stores keyed
 * hashes of addresses and of CRM ids, never an address or an id. Ended entries are kept, with the
 * time and the reason, and no longer count.
 *
 * The list counts how often it was written. If a snapshot knows of more writes than the list has,
 * the memory is an older copy in which some opt-outs are missing.
 */
import { createHmac, createSecretKey } from 'node:crypto';
import type {
  Entry,
  Identity,
  ListChanges,
  ListRemark,
  RememberedOptOut,
} from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { MemoryTables } from './memory-tables.ts';

export const doNotContactTables = `
  create table do_not_contact (
    seq integer primary key,
    address text not null, part text not null, cause text not null,
    contact text not null, made_after integer, made_by integer not null, note text,
    ended_at integer, ended text
  );
  create unique index do_not_contact_standing on do_not_contact (address, part, cause, contact)
    where ended_at is null;
  create table bearer (
    id text not null, entry integer not null references do_not_contact (seq),
    primary key (id, entry)
  ) without rowid;`;

interface Hashes {
  address: string;
  ids: readonly string[];
}

type Stored = Omit<Entry, 'through' | 'bears'>;

const columns = `e.seq, e.part, e.cause, nullif(e.contact, '') contact, e.made_after "after",
  e.made_by "by", e.note`;

/** Returns how often the list of a memory was written; 0 if that cannot be read. */
export function writesIn(meta: MemoryTables['meta']): number {
  return Number(meta.get('reached') ?? 0) || 0;
}

export type DoNotContactList = ReturnType<ReturnType<typeof doNotContactIn>['list']>;

export function doNotContactIn(tables: MemoryTables) {
  const { all, number, has, run, meta, id, immediately } = tables;
  const hash = hasher(tables.keyFor('do-not-contact 1'));
  const hashes = ({ key: address, ids }: Identity) => ({
    address: hash('address', address),
    ids: [...new Set(ids)].map((each) => hash('id', each)),
  });
  const isAny = has<[]>('select 1 from do_not_contact limit 1');
  const ofAddress = all<[address: string], Stored>(
    `select ${columns} from do_not_contact e indexed by do_not_contact_standing
     where e.address = ? and e.ended_at is null order by e.seq`,
  );
  const ofId = all<[id: string, but: string], Stored>(
    `select ${columns} from bearer b join do_not_contact e on e.seq = b.entry
     where b.id = ? and e.ended_at is null and e.address <> ? order by e.seq`,
  );
  const isBorne = has<[id: string, entry: number]>(
    'select 1 from bearer where id = ? and entry = ?',
  );
  const concerning = ({ address, ids }: Hashes): Entry[] => {
    const own = ofAddress(address).map((row): Entry => {
      const bears = row.cause === 'bounce' || ids.every((each) => isBorne(each, row.seq));
      return { ...row, through: 'address', bears };
    });
    const rows = ids.flatMap((each) => ofId(each, address));
    const others = new Map(
      rows.map((row): [number, Entry] => [row.seq, { ...row, through: 'id', bears: true }]),
    );
    return [...own, ...others.values()];
  };
  const newest = number<[]>('select ifnull(max(seq), 0) from do_not_contact');
  const reached = (): number => writesIn(meta);
  const standing = `cause = 'erasure' and ended_at is null`;
  const isAnyErased = has<[after: number]>(
    `select 1 from do_not_contact where seq > ? and ${standing} limit 1`,
  );
  const isErased = has<[address: string]>(
    `select 1 from do_not_contact indexed by do_not_contact_standing
     where address = ? and ${standing}`,
  );
  // Up to this entry there is no erasure. The list is queried for all people and may be very long.
  let none = 0;

  const add = number<RememberedOptOut & { address: string }>(
    `insert into do_not_contact (address, part, cause, contact, made_after, made_by, note)
     values (@address, @part, @cause, ifnull(@contact, ''), @after, @by, @note)
     on conflict (address, part, cause, contact) where ended_at is null do update
     set made_by = max(made_by, excluded.made_by), note = ifnull(excluded.note, note)
     returning seq`,
  );
  const bear = run<[id: string, entry: number]>(
    'insert or ignore into bearer (id, entry) values (?, ?)',
  );
  const end = run<[at: number, why: string, seq: number]>(
    'update do_not_contact set ended_at = ?, ended = ? where seq = ? and ended_at is null',
  );
  const again = number<[seq: number]>(
    `insert into do_not_contact (address, part, cause, contact, made_after, made_by, note)
     select address, part, cause, contact, made_after, made_by, note
     from do_not_contact where seq = ? returning seq`,
  );
  const bearAgain = run<[next: number, seq: number, but: readonly string[]]>(
    `insert into bearer select id, ? from bearer
     where entry = ? and id not in (select value from json_each(?))`,
  );
  const forgetTexts = run<[address: string]>(
    `update do_not_contact set note = null, ended = iif(ended is null, null, 'erased')
     where address = ?`,
  );
  const write = ({ address, ids }: Hashes, what: ListChanges, at: number): void => {
    for (const { seq, why } of what.ends) end(at, why, seq);
    for (const seq of what.frees ?? []) {
      if (end(at, 'freed from the CRM ids of another address', seq) === 0) continue;
      bearAgain(again(seq), seq, ids);
    }
    for (const { note = null, ...optOut } of what.adds) {
      const seq = add({ address, ...optOut, note });
      // A bounce belongs to the address only.
      for (const each of optOut.cause === 'bounce' ? [] : ids) bear(each, seq);
    }
  };
  const shared = {
    /** Identifies this list; the snapshot stores it. */
    id,
    /** The entries found by the address and, except for bounces, by the CRM ids. */
    // An empty list is not queried, because a first load queries it for all people.
    concerning: (who: Identity): Entry[] => (isAny() ? concerning(hashes(who)) : []),
    reached,
    /** The number of the newest entry. */
    newest,
    size: number<[]>('select count(*) from do_not_contact'),
    /** Returns what tells whether an address was forgotten on request; undefined if none was. */
    erased(): ((key: Key) => boolean) | undefined {
      const upTo = newest();
      // A smaller number means that another file has replaced the list.
      if (upTo < none) none = 0;
      if (isAnyErased(none)) return (address) => isErased(hash('address', address));
      none = upTo;
      return undefined;
    },
  };
  return {
    /** For one run: what a follower does belongs to the transaction of the run that writes. */
    list() {
      let tell = (_reached: number): void => undefined;
      return {
        ...shared,
        /**
         * Stores all remarks or none; they are on disk when this returns. Storing an existing entry
         * changes nothing. `at` is the time in milliseconds since the epoch. Throws Busy.
         */
        write(remarks: Iterable<ListRemark>, at: number): void {
          const rest = remarks[Symbol.iterator]();
          let step = rest.next();
          if (step.done) return;
          const now = immediately(() => {
            for (; !step.done; step = rest.next()) write(hashes(step.value), step.value, at);
            const next = reached() + 1;
            meta.set('reached', String(next));
            return next;
          });
          tell(now);
        },
        /** After every later write, once on disk, calls `told` with the number of writes. */
        follow(told: (reached: number) => void): void {
          tell = told;
        },
      };
    },
    forgetTexts: (key: Key) => void forgetTexts(hash('address', key)),
  };
}

const mostKnown = 1_000;

/**
 * Hashes a text for the list. `what` keeps the hash of an id from that of an address. The last
 * hashes are cached, because the same person is queried several times in a row.
 */
function hasher(key: Buffer): (what: string, text: string) => string {
  const secret = createSecretKey(key);
  const known = new Map<string, string>();
  return (what, text) => {
    const name = `${what} ${text}`;
    const found = known.get(name);
    if (found !== undefined) return found;
    const made = createHmac('sha256', secret).update(name).digest('hex');
    if (known.size >= mostKnown) known.clear();
    known.set(name, made);
    return made;
  };
}
