/**
 * Ensures that one process at a time writes a mirror, by two means.
 *
 * The lease is a lock of the operating system. It is safe if its holder dies, and also if its
 * holder is suspended, because a suspended process keeps its lock. It is not safe if a network file
 * system loses the lock, if the lease file is removed, or if the snapshot is replaced by a backup
 * while it is being written. Two processes may then believe that they hold the mirror. The fencing
 * token, a counter in the snapshot that every holder of the lease raises, and the identity of the
 * file show which of them still does.
 */
import { chmodSync, existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy } from '../../domain/errors.ts';
import { onDisk } from './database-access.ts';
import { metaIn } from './meta-table.ts';
import { statementsOf } from './prepared-statements.ts';
import { makeFolderOf } from './snapshot-folder.ts';

/** The right to write a mirror. Only one process at a time has it. */
export interface Lease {
  release(): void;
}

/** `isLeased` holds the lock for an instant, which must not make a run fail. */
const glanceMs = 200;

/**
 * Takes the lease of the snapshot at `path`, a lock on a file beside it. Throws Busy. The caller
 * must raise the fencing token next (`Snapshot.fence`).
 */
export function takeLease(path: string, waitMs = glanceMs): Lease {
  const file = fileOf(path);
  makeFolderOf(path);
  const db = onDisk(file, () => new Database(file, { timeout: waitMs }));
  try {
    chmodSync(file, 0o600);
    onDisk(file, () => db.exec('begin exclusive'));
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw new Busy(`${path}: another run holds this mirror`, {
      fix: 'run again when it has ended',
    });
  }
  return { release: () => void db.close() };
}

/** Returns whether a process holds the lease of the snapshot at `path`. Does not take it. */
export function isLeased(path: string): boolean {
  const file = fileOf(path);
  if (!existsSync(file)) return false;
  const db = new Database(file, { readonly: true, timeout: 0 });
  try {
    db.prepare('select 1 from sqlite_master').get();
    return false;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return true;
  } finally {
    db.close();
  }
}

function fileOf(path: string): string {
  return `${path}-lease`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
}

const name = 'lease-token';

/** Holds the token that this process raised. All its connections to one snapshot share it. */
export interface Token {
  own: { token: string; file: string } | undefined;
}

/** Raises and checks the fencing token of the snapshot at `path`. */
export function fenceIn(db: Database.Database, path: string, shared: Token) {
  const meta = metaIn(statementsOf(db));
  const fileNow = (): string => (db.memory ? '' : fileAt(path));
  return {
    generation: () => Number(meta.get(name) ?? 0),
    /**
     * Raises the token, to at least `least`. From then on only this connection, and others of the
     * same process, may write. Must be called within a transaction.
     */
    raise(least = 0): void {
      const token = String(Math.max(least, Number(meta.get(name) ?? 0) + 1));
      shared.own = { token, file: fileNow() };
      meta.set(name, token);
    },
    /** Undoes the last `raise` of this process if it has written nothing since. */
    withdraw(): void {
      const { own } = shared;
      if (own && meta.get(name) === own.token) meta.set(name, String(Number(own.token) - 1));
      shared.own = undefined;
    },
    /**
     * Throws Busy if another process has raised the token since `raise`, or if the file was
     * replaced; before `raise` it allows everything. It runs within the transaction that writes, so
     * that nothing can change before the transaction ends.
     */
    check(): void {
      const { own } = shared;
      if (!own || (meta.get(name) === own.token && fileNow() === own.file)) return;
      throw new Busy(
        `${path}: another process has taken this mirror over, or the snapshot was replaced`,
        { fix: 'nothing more is written here; run again when nobody else does' },
      );
    },
  };
}

/** Returns the identity of the file at `path`, which is preserved when the file is renamed. */
function fileAt(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}` : 'none';
}
