/** An entry of the audit log, with its run and approvals: as document, text, and CSV. */
import {
  type AuditEntry,
  decodeEntry,
  type DecisionEntry,
  readEntry,
  type RunEntry,
  type StoredEntry,
} from '../../store/memory/audit-entry.ts';
import type { Key } from '../../domain/record.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import type { AuditLog } from '../../store/memory/audit-log.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { instant, instantOrNull, changeName } from '../../compose/output/format-values.ts';
import { isSignedDecision } from '../../store/memory/verify-log.ts';
import { keyId } from '../../store/memory/memory-key.ts';
import { ruleNamed } from '../../records/contact/consent/gates.ts';
import { csvLines } from '../../compose/output/write-export.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { type Section, type Span, spansOf, type Text } from '../sections.ts';

/** An entry in words that need nothing else; times are in UTC. */
export interface EntryDocument {
  seq: number;
  at: string;
  type: AuditEntry['type'];
  /** The person's mark in this log, which is no hash of the address; null for nobody. */
  person: string | null;
  /** What asked for the run of a write, and who gave the command. */
  run?: { id: string; mode: string; by: string; name: string | null } | null | undefined;
  /** The decisions that approved the plan of a write, oldest first. */
  approvedBy?: { at: string; name: string; reason: string | null; as: string | null }[];
  /** What the platform shows since a write, if it is known. */
  after?: string | null;
  /** What a decision about a plan was about. */
  changes?: DecisionEntry['changes'];
  [field: string]: unknown;
}

/**
 * Returns the newest decisions that are not in the log yet, the newest first, because a run moves
 * them there. They have no number (`seq` is 0), and do not name the person's mark.
 */
export function pendingDecisions({ unaudited }: Snapshot, count: number): EntryDocument[] {
  return unaudited.newestEntries(count).flatMap((text): EntryDocument[] => {
    const entry = readEntry(JSON.parse(text));
    if (entry.type !== 'decision') return [];
    return [{ ...ownFields(entry), seq: 0, type: entry.type, person: null }];
  });
}

export interface Sources {
  run(seq: number): RunEntry | undefined;
  /** Returns the decisions that approved a plan or a part, oldest first. */
  approvals(plan: string): DecisionEntry[];
}

/** Returns a function that completes entries of a log. */
export function documentsOf(log: AuditLog): (row: StoredEntry) => EntryDocument {
  const runs = new Map<number, RunEntry | undefined>();
  let approvals: ReturnType<typeof approvalsByPlan> | undefined;
  const sources: Sources = {
    run(seq) {
      if (!runs.has(seq)) {
        const [row] = seq > 0 ? log.entries(seq - 1) : [];
        const entry = row?.seq === seq ? decodeEntry(row.body) : undefined;
        runs.set(seq, entry?.type === 'run' ? entry : undefined);
      }
      return runs.get(seq);
    },
    approvals(plan) {
      approvals ??= approvalsByPlan(log.decisions().map(({ body }) => decodeEntry(body)));
      return approvals.get(plan) ?? [];
    },
  };
  return (row) => {
    const entry = decodeEntry(row.body);
    const { type, at } = entry;
    const person = row.person?.toString('hex') ?? null;
    const told = { seq: row.seq, at: instant(at), type, person };
    return { ...ownFields(entry), ...told, ...derivedFields(entry, sources) };
  };
}

/** Returns the fields that follow from other entries, too. */
export function derivedFields(
  entry: AuditEntry,
  { run, approvals }: Sources,
): Partial<EntryDocument> {
  if (entry.type !== 'write') return {};
  const begun = run(entry.run);
  const isDone = entry.outcome === 'acked' || entry.outcome === 'found';
  const decided = entry.approval ? approvals(entry.approval) : [];
  return {
    after: isDone ? (entry.after ?? shown[entry.op] ?? null) : null,
    run: begun ? { id: begun.id, mode: begun.mode, by: begun.by, name: begun.name } : null,
    approvedBy: decided
      .filter((one) => one.at <= entry.at)
      .map(({ at, name, reason, as }) => ({ at: instant(at), name, reason, as })),
  };
}

/** Returns the approvals among these entries, by the plan or the part that they are about. */
export function approvalsByPlan(entries: readonly AuditEntry[]): Map<string, DecisionEntry[]> {
  const approvals = entries.flatMap((entry) =>
    entry.type === 'decision' && entry.what === 'approve' ? [entry] : [],
  );
  return Map.groupBy(approvals, ({ about }) => about ?? '');
}

/** Returns the fields that follow from the text of an entry alone; times are in UTC. */
export function ownFields(entry: AuditEntry): {
  type: AuditEntry['type'];
  at: string;
  [field: string]: unknown;
} {
  const at = instant(entry.at);
  if (entry.type !== 'write') return { ...entry, at };
  const { run: _run, after: _after, ...own } = entry;
  return { ...own, at, statedAt: instantOrNull(entry.statedAt) };
}

/**
 * Adds to each opt-in the number of an earlier opt-out of the same channel for which the CRM stated
 * the same time (`sameStatedAt`). The entries are those of one person, the oldest first.
 */
export function withSameTimes(entries: readonly EntryDocument[]): EntryDocument[] {
  const outs = new Map<string, number>();
  return entries.map((entry) => {
    const { says, statedAt, part, seq } = entry;
    if (typeof statedAt !== 'string') return entry;
    const what = JSON.stringify([part, statedAt]);
    if (says === 'opt_out') outs.set(what, seq);
    const sameStatedAt = says === 'opt_in' ? outs.get(what) : undefined;
    return sameStatedAt === undefined ? entry : { ...entry, sameStatedAt };
  });
}

const shown: Readonly<Record<string, string>> = {
  create: 'opt_in',
  opt_in: 'opt_in',
  opt_out: 'opt_out',
  delete: 'none',
};

type Fact = [name: string, text: string];

/** Returns what an entry says, with the name of each fact. `named`: the person's mark, too. */
export function entryParts(
  entry: EntryDocument,
  { named = false } = {},
): { title: string | Span[]; facts: Fact[] } {
  const { type, person } = entry;
  const facts: Fact[] = named && person !== null ? [['person', person]] : [];
  const word = (name: string): string => (entry[name] ? ` ${text(entry[name])}` : '');
  if (type === 'write') {
    const outcome = text(entry['outcome']);
    const change = changeName(text(entry['op']), false);
    const { part } = entry;
    const where: Span[] = typeof part === 'string' && part !== '' ? [' ', { channel: part }] : [];
    const title = [change, ...where, `${word('template')} – ${outcomes[outcome] ?? outcome}`];
    return { title, facts: [...facts, ...writeFacts(entry)] };
  }
  for (const [name, value] of Object.entries(entry)) {
    if (hidden.has(name) || value === null || value === '') continue;
    const isCause = type === 'run' && name === 'by';
    facts.push([isCause ? 'begun by' : (names[name] ?? name), text(value)]);
  }
  const { evidence, statement, signer } = entry;
  const isText = (value: unknown): value is string => typeof value === 'string';
  if (isText(statement) && isText(signer) && isText(evidence)) {
    const isValid = isSignedDecision(statement, signer, evidence) === true;
    const whose = `by the key ${keyId(signer)}`;
    facts.push(['signature', isValid ? `valid, ${whose}` : `WRONG, it is not ${whose}`]);
  }
  const { what, name, reason } = entry;
  const done = type === 'decision' && isText(what) ? decided[what] : undefined;
  if (done !== undefined) {
    // The sentence contains these facts, but not what it is about.
    const isTold = ([fact, value]: Fact): boolean =>
      fact === 'by' || fact === 'reason' || (fact === 'command of' && value === name);
    const others = facts.filter((fact) => !isTold(fact));
    const about = text(entry['about'], '');
    // anna approved changes: the campaign of June
    const who = isText(name) ? name : 'somebody';
    const whom = what === 'user' && about !== '' ? ` ${about}` : '';
    const why = isText(reason) ? `: ${reason}` : '';
    const title = [`${who} ${done}${whom}`, ...changeSpans(entry), why];
    return { title, facts: about === '' ? others : [['about', about], ...others] };
  }
  if (type === 'decision') return { title: `${text(entry['what'])}${word('about')}`, facts };
  if (type !== 'run') return { title: titles[type], facts };
  const asked = isText(name) ? `asked for by ${name}` : `begun by ${text(entry['by'])}`;
  return { title: `${text(entry['mode'])} run ${text(entry['id'])}, ${asked}`, facts };
}

/** Counts what a decision was about:  (660 × create in Newsletter) */
function changeSpans({ changes }: EntryDocument): Span[] {
  const spans = (changes ?? []).flatMap(({ op, part, n }, at): Span[] => [
    `${at === 0 ? ' (' : ', '}${withCommas(n)} × ${changeName(op, false)}`,
    ...(part === '' ? [] : [' in ', { channel: part }]),
  ]);
  return spans.length === 0 ? [] : [...spans, ')'];
}

/** Returns whether somebody with such a name decided it, or asked for it. */
export function isBy({ name, by, run }: EntryDocument, who: string): boolean {
  return [name, by, run?.name].some((one) => typeof one === 'string' && one.includes(who));
}

/** What an operator has done, by the name of the decision in the log. */
const decided: Readonly<Record<string, string>> = {
  approve: 'approved changes',
  reject: 'rejected changes',
  undo: 'undid a run',
  pause: 'paused the mirror',
  resume: 'ended the pause',
  retry: 'had refused changes tried again',
  resolve: 'resolved a conflict',
  allow: 'released a person',
  'read again': 'had a person read anew',
  user: 'changed the console user',
};

/**
 * Returns the people of the writes of a run, by their marks. Only the journal of the run
 * names them: of one that is not kept any more, or of very many changes, some are missing.
 */
export function writtenPeople(
  { outcomes }: Snapshot,
  { people }: AuditLog,
  { run, writes }: { run: string; writes: readonly StoredEntry[] },
): ReadonlyMap<string, Key> {
  const missing = new Set(writes.flatMap(({ person }) => person?.toString('hex') ?? []));
  const times = writes.map(({ body }) => decodeEntry(body).at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const found = new Map<string, Key>();
  const looked = new Set<Key>();
  let after: number | undefined;
  for (let part = 0; part < partsRead && missing.size > 0; part += 1) {
    const { changes, next } = outcomes.ofRun(run, { count: partRead, kind: 'contact', after });
    for (const { key, sentAt, endedAt } of changes) {
      if (looked.has(key) || sentAt === null || sentAt > last || (endedAt ?? last) < first)
        continue;
      looked.add(key);
      const mark = people.find(key)?.mark.toString('hex') ?? '';
      if (missing.delete(mark)) found.set(mark, key);
      if (missing.size === 0) break;
    }
    if (next === undefined) break;
    after = next;
  }
  return found;
}

type Named = Extract<Span, { record: unknown }>;
const partRead = 5_000;
const partsRead = 10;

/**
 * Links an entry to its run and to what it decided about. `isNamed`: with the mark. `who`: the
 * person, if that is known.
 */
export function entrySection(
  entry: EntryDocument,
  { isNamed = false, who }: { isNamed?: boolean; who?: Named | undefined } = {},
): Section {
  const { seq, at, run, type, what, about } = entry;
  const isRun = (name: string): boolean =>
    type === 'run' ? name === 'id' || name === 'undoes' : name === 'about' && what === 'undo';
  const { title, facts } = entryParts(entry, { named: isNamed });
  const place = seq > 0 ? `entry ${seq}` : 'not in the log yet: the next run adds it';
  const linked = (name: string, value: string): Text => {
    if (who && name === 'person') return [who, ` (${value})`];
    if (run && value.endsWith(run.id)) {
      return [value.slice(0, -run.id.length), { page: `runs/${run.id}`, text: run.id }];
    }
    if (isRun(name)) return { page: `runs/${value}`, text: value };
    if (name !== 'about' || type !== 'decision' || value !== about) return value;
    return what === 'approve' || what === 'reject' ? { page: 'approvals', text: value } : value;
  };
  return {
    title: who === undefined ? title : [`${who.name}: `, ...spansOf(title)],
    aside: [{ moment: at }, `, ${place}`],
    facts: facts.map(([name, value]) => [name, linked(name, value)]),
    isFolded: true,
    none: '',
  };
}

const outcomes: Readonly<Record<string, string>> = {
  acked: 'done',
  found: 'found done (nobody can tell whose doing it was)',
  undone: 'perhaps done, and taken back by the person since',
  rejected: 'refused by the platform',
  stale: 'did not happen, or no longer applied',
  unknown: 'no answer',
};

const titles = {
  erasure: 'the key of one person was dropped',
  key: 'a new signing key took over',
  gap: 'entries before this one are lost',
  pruning: 'entries that were too old were removed',
};

const needed: Readonly<Record<string, string>> = {
  exempt: 'none was needed: no limit applies to a first load or a creation',
  expired: `none came in time: stated opt-outs wait no longer than guards.${guardRows.opt_out.configKey}.holdFor`,
  excused: 'none was needed: an earlier attempt counted already',
};

/** Returns what is known of a write, each with its name; the approvals may be several. */
export function writeFacts(entry: EntryDocument): Fact[] {
  const { says, statedAt, before, after, status, request, run, record } = entry;
  const { approval, approvedBy = [], sameStatedAt } = entry;
  const stated = typeof statedAt === 'string' ? `, stated ${statedAt}` : '';
  const by = run && (run.name === null ? run.by : `${run.by} of ${run.name}`);
  let approved: Fact[] = [['approval', 'none was needed: below the limits']];
  if (typeof approval === 'string') {
    const why = needed[approval] ?? `plan ${approval}; the log does not name the approver`;
    approved = [['approval', why]];
    if (needed[approval] === undefined && approvedBy.length > 0) {
      approved = approvedBy.map(({ at, name, reason, as }): Fact => {
        const caller = as === null || as === name ? '' : ` (command of ${as})`;
        const said = reason === null ? '' : `: ${reason}`;
        return ['approved', `plan ${approval}, by ${name}${caller} at ${at}${said}`];
      });
    }
  }
  const answer = [status ?? 'none', request].filter(
    (word) => typeof word === 'string' || typeof word === 'number',
  );
  const sameTime = `entry ${String(sameStatedAt)} opted out by the same stated time`;
  const note: Fact = ['note', `${sameTime}: the value in the CRM changed, and the time did not`];
  return [
    ['rule', ruleText(String(entry['rule']))],
    ['CRM said', `${text(says)}${stated}${record ? ` (record ${text(record)})` : ''}`],
    ['platform', `${text(before)} → ${after ?? 'not known'}`],
    ['asked by', run ? `${by}, ${run.mode} run ${run.id}` : 'not known'],
    ...approved,
    ['answer', answer.join(', ')],
    ...(typeof sameStatedAt === 'number' ? [note] : []),
  ];
}

/** Returns the words of a rule, with its name. */
export function ruleText(id: string): string {
  const asks = ruleNamed(id)?.asks ?? otherRules[id];
  return asks === undefined ? id : `${asks} (${id})`;
}

/** The words of what decides besides the rules about people. */
const otherRules: Readonly<Record<string, string>> = {
  undo: 'an operator undid an earlier run',
  forgotten: 'the person was forgotten on request',
  unknown: 'it is not kept what decided',
  'missing-on-platform': 'in the source; no template of this name on the platform',
  'different-on-platform': 'the template differs from its source',
  'missing-from-source': 'the template is no longer in the source',
};

const hidden: ReadonlySet<string> = new Set(
  'seq at type person what about statement signer changes'.split(' '),
);

const names: Readonly<Record<string, string>> = { name: 'by', as: 'command of', publicKey: 'key' };

function text(value: unknown, none = 'nothing'): string {
  if (value === null || value === undefined) return none;
  return typeof value === 'string' || typeof value === 'number'
    ? String(value)
    : JSON.stringify(value);
}

/** The first line of the export as CSV. */
export const csvHead =
  'seq,at,type,person,op,part,template,rule,says,statedAt,record,before,after,outcome,status,' +
  'request,run,mode,by,name,approval,approvers,what,about,reason,evidence,hash,as,plan,changes';

/** Returns an entry as a line of CSV that no spreadsheet takes for a formula. */
export function csvOf(entry: EntryDocument): string {
  const run = entry.run ? { ...entry.run, run: entry.run.id } : { run: entry['id'] };
  const approvers = (entry.approvedBy ?? []).map(({ name }) => name).join('; ');
  const all: Record<string, unknown> = { ...entry, ...run, approvers };
  const cells = csvHead.split(',').map((name) => text(all[name], ''));
  return csvLines([cells], { spreadsheet: true })[0] ?? '';
}
