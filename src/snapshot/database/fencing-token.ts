/**
 * The fencing token: a counter in the snapshot that whoever takes the lease raises. A lock of the
 * operating system covers a holder that dies or is stopped (the lock stays with it). It covers
 * neither a network file system that lost it, nor a lease file that was removed, nor a snapshot
 * that was put back from a backup under who writes it. Then two believe that they hold the mirror,
 * and the token, or the file that a name stands for, tells which of them still does.
 */
import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Busy } from '../../domain/errors.ts';
import { metaIn } from './meta-table.ts';
import { statementsOf } from './prepared-statements.ts';

export interface Fence {
  /**
   * Makes this connection, and those of the same process beside it, the only ones that may write
   * from now on; the token is at least `least` then. Within a transaction.
   */
  raise(least?: number): void;
  /** The token as it stands in the snapshot: how often it was raised. */
  generation(): number;
  /**
   * Throws Busy when another has raised it since, or the file was replaced; nothing before `raise`.
   * Within the transaction that writes: what it allows, nobody takes away before it has ended.
   */
  check(): void;
}

const name = 'lease-token';

/** What a process knows of its own token; connections that stand side by side share it. */
export interface Token {
  own: { token: string; file: string } | undefined;
}

export function fenceIn(db: Database, path: string, shared: Token): Fence {
  const meta = metaIn(statementsOf(db));
  const fileNow = (): string => (db.memory ? '' : fileAt(path));
  return {
    generation: () => Number(meta.get(name) ?? 0),
    raise(least = 0) {
      const token = String(Math.max(least, Number(meta.get(name) ?? 0) + 1));
      shared.own = { token, file: fileNow() };
      meta.set(name, token);
    },
    check() {
      const { own } = shared;
      if (!own || (meta.get(name) === own.token && fileNow() === own.file)) return;
      throw new Busy(
        `${path}: another process has taken this mirror over, or the snapshot was replaced ` +
          '→ nothing more is written here; run again when nobody else does',
      );
    },
  };
}

/** Names the file itself, whatever it is called. */
function fileAt(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}` : 'none';
}
