/**
 * Stores a world in one SQLite file. Every change is in the file before the response is sent, so a
 * killed process loses nothing. A power failure may lose the last few changes but leaves the file
 * intact (WAL, synchronous = NORMAL). Only one process at a time may open the file. The request log
 * and the limit counters are not stored.
 */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { z } from 'zod';
import { codeOf, Invalid } from '../../domain/errors.ts';
import { type Rows, rowSchemas } from '../shared/row-types.ts';
import type { Storage, StoredRow } from './table.ts';

/** `world` holds the present state; `beginning` holds the state to which a reset returns. */
const tables = ['world', 'beginning'] as const;
const APPLICATION = 0x43524d65;
const FORMAT = 1;

/** Opens the file, or creates it (mode 0600) with its folder. Throws Invalid if it cannot. */
export function openFile(path: string): Storage {
  const db = connect(path);
  /** The rows to write; undefined is deleted. Each once, however often it changes until then. */
  const noted = new Map<string, readonly [string, string, string, object | undefined]>();
  const upsert = db.prepare(
    'INSERT INTO world (kind, organization, id, body) VALUES (?, ?, ?, ?) ' +
      'ON CONFLICT (kind, organization, id) DO UPDATE SET body = excluded.body',
  );
  const remove = db.prepare('DELETE FROM world WHERE kind = ? AND organization = ? AND id = ?');
  const write = db.transaction(() => {
    for (const [kind, organization, id, row] of noted.values()) {
      if (row === undefined) remove.run(kind, organization, id);
      else upsert.run(kind, organization, id, JSON.stringify(row));
    }
  });

  return {
    shelf: (kind, organization) => {
      const note = (id: string, row: object | undefined): void =>
        void noted.set(`${kind}\n${organization}\n${id}`, [kind, organization, id, row]);
      return { keep: (row) => note(row.id, row), drop: (id) => note(id, undefined) };
    },
    save() {
      if (noted.size === 0) return;
      write.immediate();
      noted.clear();
    },
    load: () => read(db, { path, table: 'world' }),
    begin() {
      const begun = db.prepare('SELECT 1 FROM beginning LIMIT 1').get() !== undefined;
      if (!begun) db.exec('INSERT INTO beginning SELECT * FROM world');
    },
    rewind() {
      noted.clear();
      db.transaction(() => {
        db.exec('DELETE FROM world; INSERT INTO world SELECT * FROM beginning');
      }).immediate();
      return read(db, { path, table: 'beginning' });
    },
    close: () => void db.close(),
  };
}

const storedRow: z.ZodType<StoredRow> = z.discriminatedUnion('kind', [
  rowOf('draws'),
  rowOf('organization'),
  rowOf('user'),
  rowOf('channel'),
  rowOf('key'),
  rowOf('contact'),
  rowOf('template'),
  rowOf('domain'),
  rowOf('send'),
]);

function rowOf<Kind extends keyof Rows>(kind: Kind) {
  const organization = z.string();
  return z.object({ kind: z.literal(kind), organization, row: rowSchemas[kind] });
}

const line = z.object({ kind: z.string(), organization: z.string(), body: z.string() });

function read(
  db: Database.Database,
  { path, table }: { path: string; table: (typeof tables)[number] },
): StoredRow[] {
  const found = db.prepare(`SELECT kind, organization, body FROM ${table} ORDER BY number`).all();
  return found.map((one) => {
    const { kind, organization, body } = line.parse(one);
    try {
      const row: unknown = JSON.parse(body);
      return storedRow.parse({ kind, organization, row });
    } catch {
      throw new Invalid(
        `--data ${path}: a ${kind} in it cannot be read; it was changed by something else`,
        { fix: 'restore a copy, or begin with a new file' },
      );
    }
  });
}

function connect(path: string): Database.Database {
  try {
    const isNew = !existsSync(path);
    if (isNew) mkdirSync(dirname(path), { recursive: true });
    const db = new Database(path, { timeout: 0 });
    if (isNew) chmodSync(path, 0o600);
    try {
      prepare(db, path);
    } catch (error) {
      db.close();
      throw error;
    }
    return db;
  } catch (error) {
    if (!(error instanceof Error) || error instanceof Invalid) throw error;
    if (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))) {
      throw new Invalid(`--data ${path}: another emulator uses it`, {
        fix: 'stop that one, or name another',
      });
    }
    throw new Invalid(`--data ${path}: cannot be opened (${error.message})`, {
      fix: 'name another file',
    });
  }
}

function prepare(db: Database.Database, path: string): void {
  const application = Number(db.pragma('application_id', { simple: true }));
  const format = Number(db.pragma('user_version', { simple: true }));
  const isEmpty = db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
  if (!isEmpty && application !== APPLICATION) {
    throw new Invalid(`--data ${path}: is not a file of the emulator`, {
      fix: 'name another file',
    });
  }
  if (format > FORMAT) {
    throw new Invalid(`--data ${path}: a newer version wrote it`, {
      fix: 'use that one, or a new file',
    });
  }
  db.pragma('locking_mode = EXCLUSIVE');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.transaction(() => {
    for (const table of tables) {
      db.exec(
        `CREATE TABLE IF NOT EXISTS ${table} (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, ` +
          'organization TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, ' +
          'UNIQUE (kind, organization, id))',
      );
    }
    db.pragma(`application_id = ${APPLICATION}`);
    db.pragma(`user_version = ${FORMAT}`);
  }).exclusive();
}
