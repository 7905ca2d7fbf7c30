/** The audit log, judged by what the platform did: told apart from what the engine remembers. */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { decodeEntry, readEntry, type WriteEntry } from '../../../src/store/memory/audit-entry.ts';
import type { AuditLog } from '../../../src/store/memory/audit-log.ts';
import type { Request } from '../../../src/domain/exchange.ts';
import { knownHead } from '../../../src/store/memory/audit-trail.ts';
import { readMemory } from '../../../src/store/memory/memory.ts';
import { verifyLog } from '../../../src/store/memory/verify-log.ts';
import { placeOf } from '../world/snapshot-files.ts';
import type { Arrival, Known, Outing } from './checker-state.ts';

export interface AuditAccount {
  /** A request to change something has arrived. */
  arrived(arrival: Pick<Arrival, 'entry' | 'asks' | 'outing'> & Sent): void;
  /** It had no answer that the process could use. */
  unheard(request: Sent, outing: Outing): void;
  /** An operator has decided something. */
  decided(what: string): void;
  /** What is missing now was lost with a snapshot. */
  excuse(path: string): void;
  /** What the platform did for us, by class of write. */
  done: ReadonlyMap<string, number>;
  /** What operators decided, by command. */
  decisions: ReadonlyMap<string, number>;
  /** How much of it nobody can explain, and needs not. */
  excused: ReadonlyMap<string, number>;
}

/** A request as it left. */
interface Sent {
  request: Pick<Request, 'method' | 'path' | 'body'>;
}

type Tally = Map<string, number>;

function add(tally: Tally, name: string, count = 1): void {
  tally.set(name, (tally.get(name) ?? 0) + count);
}

export function createAuditAccount(): AuditAccount {
  const done: Tally = new Map();
  const excused: Tally = new Map();
  const decisions: Tally = new Map();
  /** What each process has sent and heard nothing of. */
  const lost = new WeakMap<Outing, Set<string>>();
  const nameOf = ({ request: { method, path, body } }: Sent): string => `${method} ${path} ${body}`;
  return {
    done,
    excused,
    decisions,
    decided: (what) => add(decisions, what),
    unheard(sent, outing) {
      if (sent.request.method === 'GET') return;
      lost.set(outing, (lost.get(outing) ?? new Set()).add(nameOf(sent)));
    },
    arrived({ entry, asks, outing, request }) {
      if (entry.status < 200 || entry.status > 299) return;
      const name = requested(entry.route, `${asks.subscription} ${entry.channelId}`);
      add(done, name);
      // The client repeats a change without an answer by itself: that is one write.
      const isRepeated = lost.get(outing)?.has(nameOf({ request })) === true;
      if (isRepeated) add(excused, name);
    },
    excuse(path) {
      const found = read(path);
      for (const [name, count] of done)
        excused.set(name, Math.max(0, count - (found.explained.get(name) ?? 0)));
      for (const name of decisions.keys()) decisions.set(name, found.decisions.get(name) ?? 0);
    },
  };
}

function requested(route: string | null, enrolment: string): string {
  if (route === 'contacts.enrol') return enrolment;
  if (route === 'contacts.delete') return 'delete';
  return route === 'templates.create' ? 'template create' : 'template change';
}

interface Write {
  op: string;
  part: string;
  isTemplate: boolean;
}

/** Creating a contact is an opt-in by address. */
function classOf({ op, part, isTemplate }: Write): string {
  if (isTemplate) return op === 'create' ? 'template create' : 'template change';
  if (op === 'delete') return op;
  return `${op === 'opt_out' ? op : 'opt_in'} ${part}`;
}

/** An entry that was written, or waits in the snapshot. */
type Entry = Write & { of: string; outcome: string | null; status: number | null };

interface Audited {
  explained: Tally;
  /** What the platform has answered with a success. */
  answered: Tally;
  /** What operators decided. */
  decisions: Tally;
  /** Entries that wait in the snapshot. */
  waiting: number;
  /** Of the log. */
  faults: string[];
  unfounded: string[];
}

/** What the log and the snapshot at `path` tell of writes. */
function read(path: string): Audited {
  const found: Audited = {
    explained: new Map(),
    answered: new Map(),
    decisions: new Map(),
    waiting: 0,
    faults: [],
    unfounded: [],
  };
  const memory = readMemory(placeOf(path));
  if (!memory) return found;
  const { log } = memory;
  const db = existsSync(path) ? new Database(path, { readonly: true }) : undefined;
  try {
    const { faults } = verifyLog(log, { known: db && knownHead(metaOf(db)) });
    found.faults = faults.map(({ seq, what }) => `entry ${seq}: ${what}`);
    const entries = entriesOf(log, found);
    const waiting = db ? waitingIn(db, log, found) : [];
    found.waiting = waiting.length;
    explain(found, [...entries, ...waiting.filter((one) => one !== undefined)]);
    for (const change of db ? openIn(db) : []) add(found.explained, classOf(change));
  } finally {
    db?.close();
    memory.close();
  }
  return found;
}

/**
 * An entry "unknown" is followed by another one: only the last of these counts. Those of an erasure
 * name nobody, so they cannot be told apart, and each counts.
 */
function explain({ explained, answered }: Audited, entries: readonly Entry[]): void {
  const unknown = new Map<string, Entry>();
  for (const entry of entries) {
    const name = classOf(entry);
    const { of, outcome, status } = entry;
    const isAnswered = status !== null && status >= 200 && status < 300;
    if (outcome === 'unknown' && of.startsWith('0 ')) add(explained, name);
    else if (outcome === 'unknown') unknown.set(of, entry);
    else {
      unknown.delete(of);
      if (outcome !== 'rejected') add(explained, name);
      if (outcome === 'acked' && isAnswered) add(answered, name);
    }
  }
  for (const entry of unknown.values()) add(explained, classOf(entry));
}

function entriesOf(log: AuditLog, { unfounded, decisions }: Audited): Entry[] {
  const runs = new Set<number>();
  return [...log.entries()].flatMap(({ seq, person, body }): Entry[] => {
    const entry = decodeEntry(body);
    if (entry.type === 'run') runs.add(seq);
    if (entry.type === 'decision') add(decisions, entry.what);
    if (entry.type !== 'write') return [];
    const hasRun = entry.run === 0 ? entry.rule === 'forgotten' : runs.has(entry.run);
    if (!hasRun || entry.rule === 'unknown') unfounded.push(`entry ${seq}: ${body}`);
    return [entryOf(entry, person?.toString('hex') ?? '')];
  });
}

function entryOf({ run, op, part, outcome, status, template }: WriteEntry, who: string): Entry {
  const of = [run, who, template, op, part].join(' ');
  return { op, part, outcome, status, of, isTemplate: template !== null };
}

interface Row {
  id: number;
  writer: string;
  key: string;
  entry: string | null;
  outcome: string | null;
  status: number | null;
  run: string | null;
  kind: string | null;
  op: string | null;
  part: string | null;
}

/** What waits in the snapshot for the log; undefined for what is no write. */
function waitingIn(
  db: Database.Database,
  log: AuditLog,
  { decisions }: Audited,
): (Entry | undefined)[] {
  const rows = db.prepare<[], Row>(
    `select u.id, u.writer, u.key, u.entry, u.outcome, u.status, c.run, c.kind, c.op, c.part
     from unaudited u left join change c on c.seq = u.change order by u.id`,
  );
  return rows
    .all()
    .filter(({ writer, id }) => id > log.reached(writer))
    .map(({ entry, key, ...row }) => {
      const told = entry === null ? undefined : readEntry(JSON.parse(entry));
      if (told?.type === 'write') return entryOf(told, key);
      if (told?.type === 'decision') add(decisions, told.what);
      const { op, outcome, status, run, kind, part } = row;
      if (op === null) return undefined;
      const of = [run, key, op, part].join(' ');
      return { op, part: part ?? '', outcome, status, of, isTemplate: kind === 'template' };
    });
}

/** Changes whose outcome is open. */
function openIn(db: Database.Database): Write[] {
  const open = db.prepare<[], { kind: string; op: string; part: string }>(
    "select kind, op, part from change where state in ('sent', 'unknown')",
  );
  return open.all().map(({ kind, ...change }) => ({ ...change, isTemplate: kind === 'template' }));
}

function metaOf(db: Database.Database): Parameters<typeof knownHead>[0] {
  const get = db.prepare<[string], { value: string }>('select value from meta where name = ?');
  const nothing = () => 0;
  return { get: (name) => get.get(name)?.value, set: nothing, drop: nothing };
}

/** After a process. `ended`: by itself, with all that it was to do. */
export function checkAudit(
  path: string,
  { audit: { done, excused, decisions }, judge }: Pick<Known, 'audit' | 'judge'>,
  ended: boolean,
): void {
  const found = read(path);
  const { explained, answered, faults, unfounded, waiting } = found;
  judge('the audit log is whole', faults[0] ?? false);
  judge('a write in the audit log has a rule and a run', unfounded[0] ?? false);
  const left = ended && waiting > 0 && `${waiting} entries wait in the snapshot`;
  judge('a process that ends has nothing left to audit', left);
  for (const [name, count] of done) {
    const told = (explained.get(name) ?? 0) + (excused.get(name) ?? 0);
    const missing = told < count && `${name}: the platform did ${count}, and ${told} are told of`;
    judge('every write is in the audit log', missing);
  }
  for (const [name, count] of answered) {
    const all = done.get(name) ?? 0;
    const twice = count > all && `${name}: the platform did ${all}, and ${count} are told of`;
    judge('no write is in the audit log twice', twice);
  }
  for (const [name, count] of decisions) {
    const told = found.decisions.get(name) ?? 0;
    const odd = told !== count && `${name}: decided ${count} times, and ${told} are told of`;
    judge('every decision is in the audit log once', odd);
  }
}
