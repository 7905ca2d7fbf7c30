/**
 * The audit log: what was sent to the platform, why, and who allowed it, for years. Its entries
 * form a chain of hashes (audit-entry.ts); a checkpoint is the signed hash of an entry. Only the
 * process that has the mirror's lease appends.
 *
 * People are named by marks, which say nothing without two keys: one from the key file and a random
 * one of each person, which is in the memory. An erasure drops the person's key and the way to
 * their row: the entries and their proof stay, and nobody can tell any more who they are about.
 */
import { hash as digest } from 'node:crypto';
import type { Key } from '../../domain/record.ts';
import {
  type AuditEntry,
  encodeEntry,
  entryIn,
  fieldSql,
  firstHash,
  hashOf,
  type StoredEntry,
} from './audit-entry.ts';
import type { MemoryTables } from './memory-tables.ts';
import { randomBytesOf, type SigningKey } from './memory-key.ts';

export interface Appended {
  entry: AuditEntry;
  /** The address of the person it concerns; undefined if it concerns nobody. */
  person?: Key | undefined;
  /** The CRM records that a write followed; their keyed fingerprint goes into the entry. */
  records?: string | undefined;
  /** The id of the run that a write belongs to; the number of its entry goes into the entry. */
  run?: string | undefined;
}

export interface Checkpoint {
  seq: number;
  hash: Buffer;
  at: number;
  /** The public key that belongs to the signature, in PEM form. */
  publicKey: string;
  signature: Buffer;
}

export interface Head {
  seq: number;
  hash: Buffer;
}

export function checkpointText(log: string, { seq, hash, at }: Head & { at: number }): string {
  return `crm-mirror audit log ${log}\n${seq}\n${hash.toString('hex')}\n${at}\n`;
}

/** Selects all entries but writes, which are nearly all: an SQL condition with an index. */
const isNoWrite = `body not like '["w"%'`;

/** Selects writes, by the number of the entry of their run; 0 if they name none. */
const isWrite = (row = '') => `${row}body like '["w"%'`;
const runSql = (row = '') =>
  `case when json_valid(${row}body) then ${row}${fieldSql('write', 'run')} else 0 end`;

export const auditTables = `
  create table audit (
    seq integer primary key, person integer, body text not null, hash blob not null
  );
  create table reached (writer text primary key, id integer not null) without rowid;
  create table run (id text primary key, seq integer not null) without rowid;
  create table checkpoint (
    seq integer primary key, hash blob not null, at integer not null,
    public_key text not null, signature blob not null
  );
  create index audit_by_person on audit (person) where person is not null;
  create index audit_but_writes on audit (seq) where ${isNoWrite};
  create index audit_by_run on audit (
  ${runSql()}) where ${isWrite()};
  create table person (id integer primary key, mark blob not null, lookup blob, key blob);
  create unique index person_by_lookup on person (lookup) where lookup is not null;`;

/** Selects some of these entries. Times are in milliseconds since the epoch. */
interface NoWrites {
  /** Only entries with smaller numbers. */
  before: number;
  type?: string | undefined;
  /** A run counts as long as it wrote. */
  from?: number | undefined;
  to?: number | undefined;
  /** A part of the name of who decided or asked for it. */
  by?: string | undefined;
  /** The hash of a plan, or of a part of one. */
  plan?: string | undefined;
  /** The numbers of runs that are selected beside those of `plan`. */
  runs?: readonly number[] | undefined;
  count: number;
}

/** Selects writes of a run; `names`: those approved by a plan or a part with such a name. */
interface RunWrites {
  run: number;
  after: number;
  names: string[] | null;
  count: number;
}

const mostBetweenMs = 31 * 86_400_000;

export type AuditLog = ReturnType<typeof auditLogIn>;

export function auditLogIn(tables: MemoryTables, signing: SigningKey) {
  const { one, all, number, value, has, each, run, meta, rows, immediately } = tables;
  // A memory may get another id; what was signed before names this one.
  const id = meta.get('log') ?? '';
  const people = peopleIn(tables);
  // Who changed an entry may have left a value of another type, and is to be found out.
  const entries = `select seq, cast(mark as blob) person, cast(body as text) body,
    cast(hash as blob) hash from audit left join person on person.id = audit.person`;
  const lastEntry = one<[], Head>(
    'select seq, cast(hash as blob) hash from audit order by seq desc limit 1',
  );
  const hashAt = value<[seq: number], Buffer>('select cast(hash as blob) from audit where seq = ?');
  const after = each<[seq: number], StoredEntry>(`${entries} where seq > ? order by seq`);
  const since = each<[at: number], StoredEntry>(
    `${entries} where seq >= (select min(seq) from audit where body ->> 1 >= ?) order by seq`,
  );
  const aboutTemplate = all<[text: string, key: Key], StoredEntry>(
    `${entries} where instr(body, ?) and body ->> '$[#-1]' = ? order by seq`,
  );
  const nameSql = `case body ->> 0 when 'decision' then ${fieldSql('decision', 'name')}
    when 'run' then ${fieldSql('run', 'name')} when 'erasure' then ${fieldSql('erasure', 'by')} end`;
  const noWrites = all<NoWrites, StoredEntry>(
    // An entry that somebody has changed need not be JSON, and has to be found.
    `${entries} where ${isNoWrite} and seq < @before and case when json_valid(body) then
       (@type is null or body ->> 0 = @type)
       and (@from is null or body ->> 1 >= @from or body ->> 0 = 'run' and (
         select wrote.body ->> 1 from audit wrote
         where ${isWrite('wrote.')} and ${runSql('wrote.')} = +audit.seq
         order by wrote.seq desc limit 1) >= @from)
       and (@to is null or body ->> 1 < @to)
       and (@by is null or instr(${nameSql}, @by))
       and (@plan is null or body ->> 0 = 'decision'
         and @plan in (${fieldSql('decision', 'about')}, ${fieldSql('decision', 'plan')})
         or seq in (select value from json_each(@runs)))
       else 1 end
     order by seq desc limit @count`,
  );
  const findNoWrites = (which: Partial<NoWrites>): StoredEntry[] =>
    noWrites({
      type: undefined,
      from: undefined,
      to: undefined,
      by: undefined,
      plan: undefined,
      runs: [],
      before: Number.MAX_SAFE_INTEGER,
      count: -1,
      ...which,
    });
  const loneWrites = all<Omit<NoWrites, 'type' | 'by' | 'plan'>, StoredEntry>(
    `${entries} where ${isWrite()} and ${runSql()} < +(select min(seq) from audit)
       and +seq < @before and (@from is null or body ->> 1 >= @from)
       and (@to is null or body ->> 1 < @to) order by +seq desc limit @count`,
  );
  const ofRun = `where ${isWrite()} and ${runSql()} = @run`;
  const countWrites = number<{ run: number }>(`select count(*) from audit ${ofRun}`);
  const isApproved = `case when json_valid(body) then ${fieldSql('write', 'approval')} in (
    select value from json_each(@names)) end`;
  const writes = all<RunWrites, StoredEntry>(
    `${entries} ${ofRun} and seq > @after and (@names is null or ${isApproved})
     order by seq limit @count`,
  );
  const approvedBy = all<{ names: string[] }, StoredEntry>(
    `${entries} where ${isWrite()} and ${isApproved}`,
  );
  const approved = all<{ since: number; names: string[] }, { run: number; n: number }>(
    `select ${runSql()} run, count(*) n from audit
     where ${isWrite()} and seq > @since and ${isApproved} group by 1`,
  );
  /** Returns the decisions about a plan, and the names under which writes were approved by it. */
  const plannedAs = (hash: string) => {
    const decided = findNoWrites({ plan: hash });
    const names = decided.flatMap(({ body }) => {
      const entry = entryIn(body);
      return entry?.type === 'decision' && entry.about !== null ? [entry.about] : [];
    });
    return { decided, names: [...new Set([hash, ...names])] };
  };
  const lastKey = value<[], string>('select public_key from checkpoint order by seq desc limit 1');
  const signatures = each<[], { seq: number; at: number }>(
    'select seq, at from checkpoint order by seq desc',
  );
  const runNumber = value<[id: string], number>('select seq from run where id = ?');
  const lastOld = one<[before: number, upTo: number], Head>(
    `select seq, hash from audit
     where seq < ifnull((select min(seq) from audit where body ->> 1 >= ?), seq + 1)
       and seq < (select max(seq) from audit) and seq <= ? order by seq desc limit 1`,
  );
  const put = run<[seq: number, person: number | null, body: string, hash: Buffer]>(
    'insert into audit (seq, person, body, hash) values (?, ?, ?, ?)',
  );
  const sign = run<Checkpoint>(
    `insert or ignore into checkpoint (seq, hash, at, public_key, signature)
     values (@seq, @hash, @at, @publicKey, @signature)`,
  );
  const setReached = run<[writer: string, id: number]>(
    'insert or replace into reached values (?, ?)',
  );
  const addRun = run<[id: string, seq: number]>('insert or replace into run values (?, ?)');
  const dropFrom = (table: string) => run<[upTo: number]>(`delete from ${table} where seq <= ?`);

  const head = (): Head => lastEntry() ?? { seq: 0, hash: firstHash };
  const add = (before: Head, entry: AuditEntry, person: Person | null): Head => {
    const seq = before.seq + 1;
    const body = encodeEntry(entry);
    const hash = hashOf(before.hash, { seq, person: person?.mark ?? null, body });
    put(seq, person?.id ?? null, body, hash);
    return { seq, hash };
  };
  const appendAll = (appended: readonly Appended[]): void => {
    let before = head();
    // Only the log knows the person's key, and the number of the run's entry. Most people have
    // several changes in a row.
    const known = new Map<Key, ReturnType<typeof people.of>>();
    for (const { entry: given, person: address, records, run: ofRun } of appended) {
      const person = address === undefined ? null : (known.get(address) ?? people.of(address));
      if (person && address !== undefined) known.set(address, person);
      let entry = given;
      if (entry.type === 'write') {
        const isKnown = person !== null && records !== undefined;
        // The fingerprint is 16 hexadecimal digits.
        const record = isKnown
          ? keyedHash(person.key, `record ${records}`).toString('hex', 0, 8)
          : entry.record;
        const number = ofRun === undefined ? entry.run : (runNumber(ofRun) ?? 0);
        entry = { ...entry, record, run: number };
      }
      before = add(before, entry, person);
      if (entry.type === 'run') addRun(entry.id, before.seq);
    }
  };
  const signHead = (at: number): void => {
    const { id: key, publicKey } = signing;
    const before = lastKey();
    if (before !== undefined && before !== publicKey)
      appendAll([{ entry: { type: 'key', at, id: key, publicKey } }]);
    const { seq, hash } = head();
    if (seq === 0) return;
    const signature = signing.sign(checkpointText(id, { seq, hash, at }));
    sign({ seq, hash, at, publicKey, signature });
  };
  return {
    /** Identifies this log; its checkpoints sign it. */
    id,
    people,
    head,
    /** Undefined if the entry was removed. 0: the hash before the first entry. */
    hashAt: (seq: number) => (seq === 0 ? firstHash : hashAt(seq)),
    entries: (seq = 0) => rows(after(seq)),
    entriesSince: (at: number) => rows(since(at)),
    /** All entries but writes, the newest first. */
    noWrites: findNoWrites,
    /** The writes whose run has no entry, such as those of an erasure; the newest first. */
    loneWrites,
    /** Reads the writes of runs, by the numbers of their entries: all, or those of a plan. */
    writesOfRuns(plan: string | undefined) {
      const { decided = [], names = null } = plan === undefined ? {} : plannedAs(plan);
      const since = decided.at(-1)?.seq;
      const found = since === undefined || !names ? [] : approved({ since, names });
      const counts = new Map(found.map(({ run, n }) => [run, n]));
      return {
        /** The runs with writes that the plan approved. */
        runs: [...counts.keys()],
        count: (run: number): number => (names ? (counts.get(run) ?? 0) : countWrites({ run })),
        after: (run: number, after: number, count: number): StoredEntry[] =>
          writes({ run, after, names, count }),
      };
    },
    about: all<[person: number], StoredEntry>(`${entries} where audit.person = ? order by seq`),
    aboutTemplate: (key: Key) => aboutTemplate(JSON.stringify(key), key),
    /** Returns the entries of the decisions about a plan, and of the writes that these approved. */
    aboutPlan(hash: string): StoredEntry[] {
      const { decided, names } = plannedAs(hash);
      const all = [...decided, ...approvedBy({ names })];
      return all.toSorted((one, other) => one.seq - other.seq);
    },
    decisions: all<[], StoredEntry>(
      `${entries} where ${isNoWrite} and body like '["decision"%' order by seq`,
    ),
    checkpoints: all<[], Checkpoint>(
      `select seq, cast(hash as blob) hash, at, public_key publicKey,
         cast(signature as blob) signature
       from checkpoint order by seq`,
    ),
    /** Returns how far a writer's rows have been appended; 0 if none were. */
    reached: number<[writer: string]>('select ifnull(max(id), 0) from reached where writer = ?'),
    knowsRun: has<[id: string]>('select 1 from run where id = ?'),
    /**
     * Appends entries in one transaction. `ends` states how far each writer's rows are appended
     * with them, so that a caller that is killed does not append them twice. Throws Busy.
     */
    append: (appended: readonly Appended[], ends: Iterable<[writer: string, id: number]> = []) =>
      immediately(() => {
        appendAll(appended);
        for (const end of ends) setReached(...end);
      }),
    /** Signs the last entry, unless it is signed. An entry names the key if it is a new one. */
    checkpoint: (at: number): void => immediately(() => signHead(at)),
    /** Drops the key of a person, and appends a signed entry. Call it within a transaction. */
    erase(person: Key, at: number, by: string): void {
      // Without the person: with the do-not-contact list, its time would tell who it was.
      if (people.drop(person)) add(head(), { type: 'erasure', at, by }, null);
      signHead(at);
    },
    /**
     * Removes the entries before `before`, and appends an entry that says so. Returns how many were
     * removed. The last entry always stays, because the next one follows its hash.
     *
     * The clock alone does not decide what is old, because it may jump ahead by years. The log
     * counts time by its checkpoints, of which each run that writes makes one: between two of them,
     * at most 31 days count.
     */
    prune: (before: number, at: number): number =>
      immediately(() => {
        // The last entry that is old enough by the time that counts.
        let lastAged = 0;
        let age = 0;
        let later = at;
        for (const { seq, at: earlier } of signatures()) {
          age += Math.min(Math.max(later - earlier, 0), mostBetweenMs);
          if (age >= at - before) {
            lastAged = seq;
            break;
          }
          later = earlier;
        }
        const upTo = lastOld(before, lastAged);
        if (!upTo) return 0;
        const { seq, hash } = upTo;
        appendAll([{ entry: { type: 'pruning', at, upTo: seq, hash: hash.toString('hex') } }]);
        dropFrom('checkpoint')(seq);
        dropFrom('run')(seq);
        return dropFrom('audit')(seq);
      }),
  };
}

const keyBytes = 16;
/** Few bytes, because each is stored twice. Two people may have the same ones. */
const lookupBytes = 6;

/** A person of the log: the number of the row, and the mark of 16 bytes. */
export interface Person {
  id: number;
  mark: Buffer;
}

/** The people of the log. The functions that write need a transaction. */
function peopleIn({ one, value, run, keyFor }: MemoryTables) {
  const secret = keyFor('audit 1');
  const get = one<[lookup: Buffer], Person & { key: Buffer }>(
    'select id, mark, key from person where lookup = ?',
  );
  const put = value<[mark: Buffer, lookup: Buffer, key: Buffer], number>(
    'insert into person (mark, lookup, key) values (?, ?, ?) returning id',
  );
  const forget = run<[id: number]>('update person set lookup = null, key = null where id = ?');
  const markOf = (key: Buffer, name: Buffer): Buffer => sha256(key, name).subarray(0, keyBytes);
  /**
   * Follows the places of an address until one is free or belongs to this very person. A place is a
   * keyed hash: without the secret, nobody can tell who a row is about.
   */
  const search = (address: Key) => {
    const name = keyedHash(secret, keyedHash(secret, `person ${address}`).toString('hex'));
    let lookup = name.subarray(0, lookupBytes);
    for (;;) {
      const found = get(lookup);
      if (!found || markOf(found.key, name).equals(found.mark)) return { lookup, found, name };
      lookup = sha256(lookup, name).subarray(0, lookupBytes);
    }
  };
  return {
    /** Adds a new one. */
    of(address: Key): Person & { key: Buffer } {
      const { lookup, found, name } = search(address);
      if (found) return found;
      const key = randomKey();
      const mark = markOf(key, name);
      return { id: put(mark, lookup, key) ?? 0, mark, key };
    },
    find: (address: Key): Person | undefined => search(address).found,
    marked: one<[mark: Buffer], Person>('select id, mark from person where mark = ?'),
    drop(address: Key): Person | undefined {
      const { found } = search(address);
      if (found) forget(found.id);
      return found;
    },
  };
}

function sha256(...parts: Buffer[]): Buffer {
  return digest('sha256', Buffer.concat(parts), 'buffer');
}

/** The key has a fixed length. */
function keyedHash(key: Buffer, text: string): Buffer {
  return sha256(key, Buffer.from(text));
}

const randomKey = randomBytesOf(keyBytes);
