/** Opens the file of an audit log: `<snapshot>-audit`, beside the snapshot. */
import type Database from 'better-sqlite3';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { Invalid } from '../../domain/errors.ts';
import { openToLook, waiterFor } from '../database/database-access.ts';
import { openToWrite } from '../database/open-to-write.ts';
import { type AuditLog, auditLogIn, auditTables } from './audit-log.ts';

const version = 1;

/** What a log needs besides its file. */
export interface AuditOpening {
  path: string;
  /** The secret that finds the people, 32 bytes; it comes from the do-not-contact list's key. */
  secret: Buffer;
  randomHex(bytes: number): string;
}

/** Opens the log for appending; creates it (0600) if there is none. Throws Invalid and Busy. */
export function openAuditLog({ path, secret, randomHex }: AuditOpening): AuditLog {
  if (!existsSync(path)) make(path, randomHex);
  const db = openToWrite(path, 'the audit log');
  const patiently = waiterFor(db, path, { what: 'audit log' });
  try {
    const id = patiently(() => {
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      // A dropped key must not stay in a free page.
      db.pragma('secure_delete = ON');
      return begin(db, path, randomHex);
    });
    return auditLogIn(db, { id, secret, patiently });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens the log for reading; undefined if there is none. Throws Invalid. */
export function readAuditLog({
  path,
  secret,
}: Omit<AuditOpening, 'randomHex'>): AuditLog | undefined {
  if (!existsSync(path)) return undefined;
  const db = openToLook(path, { what: 'audit log' });
  try {
    if (versionOf(db, path) === 0) {
      db.close();
      return undefined;
    }
    return auditLogIn(db, {
      id: idOf(db),
      secret,
      patiently: waiterFor(db, path, { what: 'audit log' }),
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Makes an empty log, whole or not at all: a full disk leaves nothing of it. */
function make(path: string, randomHex: AuditOpening['randomHex']): void {
  const part = `${path}.part`;
  rmSync(part, { force: true });
  const db = openToWrite(part, 'the audit log');
  try {
    begin(db, part, randomHex);
  } finally {
    db.close();
  }
  // Those of a log that is gone do not belong to this one.
  for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  renameSync(part, path);
}

/** Creates the tables of an empty file. Returns the id of the log. */
function begin(db: Database.Database, path: string, randomHex: AuditOpening['randomHex']): string {
  const create = db.transaction(() => {
    if (versionOf(db, path) > 0) return;
    db.exec(auditTables);
    db.prepare(`insert into meta values ('id', ?)`).run(randomHex(8));
    db.pragma(`user_version = ${version}`);
  });
  if (versionOf(db, path) === 0) create.exclusive();
  return idOf(db);
}

function versionOf(db: Database.Database, path: string): number {
  const found = Number(db.pragma('user_version', { simple: true }));
  if (found <= version) return found;
  throw new Invalid(`${path}: this audit log was written by a newer version of crm-mirror`, {
    fix: 'run that version',
  });
}

function idOf(db: Database.Database): string {
  const get = db.prepare<[], { value: string }>(`select value from meta where name = 'id'`);
  return get.get()?.value ?? '';
}
