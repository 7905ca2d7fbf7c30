/** What a process leaves behind: the snapshot's files, as a kill leaves them, and what they say. */
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { z } from 'zod';
import { shortHash } from '../../../src/engine/context/person-identity.ts';
import type { Shown } from '../checks/approvals.ts';
import Database from 'better-sqlite3';

/** What the snapshot says of people and of changes. */
export interface Traces {
  recorded: { key: string; channel: string; is: 'opt_in' | 'opt_out'; by: string }[];
  /** Changes of people. */
  acked: { key: string; op: string; part: string }[];
  /** Changes of people, and of templates, that are marked as sent. */
  sent: { contact: number; template: number };
  /** Changes of people whose outcome is open. */
  open: { key: string; op: string; part: string }[];
  /** Whether the outcome of a template's change is open. */
  isLetterOpen: boolean;
  /** Changes, of every kind, that are in this state. */
  unknown: number;
  planned: number;
  /** What somebody can be told about: kind, key and channel. */
  problems: string[];
  /** Changes of the newest run. */
  newest: number;
  /** What guards hold, and what they held before: the newest last. */
  /** `undoes`: whether the plan is one of `undo`, so that no other run makes its changes. */
  held: (Shown & { current: boolean; undoes: boolean })[];
  /** Stated opt-outs that are held from now on. */
  standing: { key: string; part: string }[];
  /** Opt-outs of people that a run let through and that were not done, and nothing since then. */
  undone: { key: string; part: string }[];
  /** The canaries of each class; undefined if there never was any. */
  canaries: z.infer<typeof canaries> | undefined;
  /** What somebody is called where no address may stand. */
  hashOf(key: string): string;
}

const body = z.object({
  channels: z.record(z.string(), z.object({ is: z.enum(['opt_in', 'opt_out']), by: z.string() })),
});

const canary = z.object({
  state: z.enum(['applying', 'waiting', 'passed', 'failed']),
  /** The run that began it. */
  run: z.string(),
});
const canaries = z.object({
  mapping: z.string().nullable(),
  classes: z.object({
    delete: canary.optional(),
    opt_in: canary.optional(),
    template: canary.optional(),
  }),
  /** How the last one ended. */
  last: z.object({ class: z.string(), is: z.string(), run: z.string() }).optional(),
});

export function readFiles(path: string): Traces {
  const db = new Database(path, { readonly: true });
  try {
    const rows = db.prepare<[], { key: string; body: string }>(
      "select key, body from recorded where kind = 'contact'",
    );
    const changes = db.prepare<[], { key: string; op: string; part: string }>(
      "select key, op, part from change where kind = 'contact' and state = 'acked'",
    );
    const open = db.prepare<[], { key: string; op: string; part: string }>(
      "select key, op, part from change where kind = 'contact' and state in ('sent', 'unknown')",
    );
    const states = db.prepare<[], { kind: string; state: string; n: number }>(
      'select kind, state, count(*) n from change group by kind, state',
    );
    const problems = db.prepare<[], { kind: string; key: string; part: string }>(
      'select kind, key, part from problem',
    );
    const newest = db.prepare<[], { n: number }>(
      'select count(*) n from change where run = (select run from change order by seq desc limit 1)',
    );
    const held = db.prepare<[], Shown & { current: number; undone: string }>(
      `select l.list plan, h.undoes undone, h.ended_at is null and h.wanted
           and not exists (select 1 from decision r where r.id = h.decision
             and r.verdict = 'rejected' and r.ended_at is null) and s.number = (
           select max(p.number) from listed k join held_plan p on p.plan = k.list
           where k.hold = h.id) current, h.guard, h.key, h.op, h.part, h.target, h.body
       from listed l join hold h on h.id = l.hold
         left join held_plan s on s.plan = l.list left join decision d on d.id = l.list
       order by coalesce(current, 0), coalesce(s.at, d.at), plan`,
    );
    const standing = db.prepare<[], { key: string; part: string }>(
      "select distinct key, part from hold where guard = 'opt_out' and ended_at is null and undoes = ''",
    );
    const undone = db.prepare<[], { key: string; part: string }>(
      `select key, part from change c where kind = 'contact' and op = 'opt_out'
         and state in ('stale', 'rejected') and seq = (
           select max(seq) from change l
           where l.kind = c.kind and l.key = c.key and l.part = c.part)`,
    );
    const meta = db.prepare<[string], { value: string }>('select value from meta where name = ?');
    const secret = meta.get('name-key')?.value;
    const book = meta.get('canary')?.value;
    const counts = states.all();
    const count = (state: string, kind?: string): number =>
      counts
        .filter((one) => one.state === state && (kind ?? one.kind) === one.kind)
        .reduce((sum, { n }) => sum + n, 0);
    const recorded = rows.all().flatMap(({ key, body: text }) => {
      const channels = Object.entries(body.parse(JSON.parse(text)).channels);
      return channels.map(([channel, { is, by }]) => ({ key, channel, is, by }));
    });
    return {
      recorded,
      acked: changes.all(),
      sent: { contact: count('sent', 'contact'), template: count('sent', 'template') },
      open: open.all(),
      isLetterOpen: count('sent', 'template') + count('unknown', 'template') > 0,
      unknown: count('unknown'),
      planned: count('planned'),
      problems: problems.all().map(({ kind, key, part }) => `${kind} ${key} ${part}`),
      newest: newest.get()?.n ?? 0,
      hashOf: (key) => shortHash({ get: () => secret }, key),
      standing: standing.all(),
      undone: undone.all(),
      canaries: book === undefined ? undefined : canaries.parse(JSON.parse(book)),
      held: held.all().map((row) => ({
        ...row,
        current: row.current === 1,
        undoes: row.undone !== '',
      })),
    };
  } finally {
    db.close();
  }
}

/** Every row of the snapshot at `path`; undefined when there is none. */
export function contentOf(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const db = new Database(path, { readonly: true });
  try {
    const tables = db.prepare<[], { name: string }>(
      "select name from sqlite_master where type = 'table' order by name",
    );
    const rows = tables
      .all()
      .map(({ name }) => [name, db.prepare(`select * from "${name}"`).all()]);
    return JSON.stringify(rows);
  } finally {
    db.close();
  }
}

/** The memory of the snapshot at `path`. */
export function placeOf(path: string) {
  return { path: `${path}-memory`, keyFile: `${path}-memory-key` };
}

const ends = ['', '-wal'];

/**
 * Closing a database tidies up after it, and nobody tidies up after a kill: keeps the files as they
 * are now, lets `close` do its work, and puts them back.
 */
export function killing(path: string, close: () => void): void {
  const kept = ends.filter((end) => existsSync(path + end));
  for (const end of kept) copyFileSync(path + end, `${path}${end}-kept`);
  close();
  removeFiles(path);
  for (const end of kept) {
    copyFileSync(`${path}${end}-kept`, path + end);
    rmSync(`${path}${end}-kept`);
  }
}

export function removeFiles(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
}
