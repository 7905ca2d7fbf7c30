/** Opens the snapshot (snapshot.ts): to write, to look into it, or for a run. */
import { existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Invalid } from '../domain/errors.ts';
import { copyOf } from './database/database-backup.ts';
import { check, isCheckDue, isDamage, isOurs, noteChecked, setAside } from './damage-check.ts';
import { missingFolders } from './database/snapshot-folder.ts';
import {
  openToLook,
  openToWrite,
  setPragmas,
  type Wait,
  waiterFor,
} from './database/database-access.ts';
import { fenceIn, type Token } from './database/writer-lease.ts';
import { copiedKey, metaIn } from './database/meta-table.ts';
import { holdsIn } from './holds/holds.ts';
import { isCurrent, migrate, versionOf } from './database/schema.ts';
import { statementsOf, transactionsOf } from './database/prepared-statements.ts';
import { stagingTables } from './staging/staging-tables.ts';
import { partsIn, type Snapshot } from './snapshot.ts';

/**
 * Opens the snapshot at `path`, and creates it (0600) and its folder if they do not exist.
 * `inMemory` is for a plan on a mirror that has no snapshot yet: nothing is left behind. Throws
 * Busy while another process has it locked, and Invalid if it is damaged or has a newer version.
 */
export function openSnapshot(path: string, options: { inMemory?: boolean } = {}): Snapshot {
  return undamaged(path, () => open(path, options));
}

/**
 * Opens the snapshot for a run whose process holds the lease. The snapshot is checked if that is
 * due; a damaged one is moved to the name `aside`, and a new one is created. `admit` may refuse, by
 * throwing, before anything is changed. Throws as `openSnapshot` does.
 */
export function openForRun(
  path: string,
  { at, ...options }: { at: number; isThrowaway?: boolean; admit?: Opening['admit'] },
): { snapshot: Snapshot; aside: string | undefined } {
  try {
    return { snapshot: open(path, { checkedAt: at, ...options }), aside: undefined };
  } catch (error) {
    if (!isDamage(error)) throw error;
    if (!isOurs(path)) throw damageOf(path);
    const aside = setAside(path, at);
    return { snapshot: openSnapshot(path), aside };
  }
}

interface Opening {
  inMemory?: boolean;
  /** Whether the file is deleted afterwards, so that nothing has to survive a crash. */
  isThrowaway?: boolean | undefined;
  /** The current time; if set, the snapshot is checked when due. */
  checkedAt?: number;
  admit?: ((snapshot: Snapshot) => void) | undefined;
}

function open(path: string, { inMemory, checkedAt, admit, isThrowaway }: Opening): Snapshot {
  const db = inMemory ? new Database(':memory:') : openToWrite(path, 'the snapshot');
  return openWith(db, path, (patiently) => {
    // Nothing is written into what is no snapshot.
    versionOf(db, path);
    setPragmas(db, { isThrowaway });
    migrate(db, path);
    const snapshot = snapshotOf(db, { path, patiently });
    admit?.(snapshot);
    if (checkedAt === undefined || !isCheckDue(db, checkedAt)) return snapshot;
    check(db);
    snapshot.transaction(() => noteChecked(db, checkedAt));
    return snapshot;
  });
}

/** Prepares an open database; closes it if that fails. */
function openWith<T>(
  db: Database.Database,
  path: string,
  prepare: (patiently: Wait) => T,
  timeoutMs?: number,
): T {
  const patiently = waiterFor(db, path, { what: 'snapshot', timeoutMs });
  try {
    return patiently(() => prepare(patiently));
  } catch (error) {
    db.close();
    throw error;
  }
}

function undamaged<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw isDamage(error) ? damageOf(path) : error;
  }
}

function damageOf(path: string): Invalid {
  if (!isOurs(path)) {
    return new Invalid(`${path}: this is no snapshot, and no readable database`, {
      fix: 'write another path into snapshot, or move the file away',
    });
  }
  return new Invalid(`${path}: this snapshot is damaged, it is not a readable database`, {
    fix: 'restore a backup, or run `crm-mirror sync`: it sets it aside and begins anew',
  });
}

/**
 * Opens the snapshot at `path` read-only, while another process may write it. Returns undefined if
 * there is none yet, or if it is just being created. A snapshot of an older version is migrated
 * first. Throws as `openSnapshot` does.
 */
export function lookInto(
  path: string,
  { checkedAt, timeoutMs }: { checkedAt?: number; timeoutMs?: number | undefined } = {},
): Snapshot | undefined {
  if (!existsSync(path)) {
    missingFolders(path);
    return undefined;
  }
  return undamaged(path, () => {
    const db = openToLook(path, { what: 'snapshot', timeoutMs });
    const prepare = (patiently: Wait): Snapshot | number => {
      if (!isCurrent(db, path)) return versionOf(db, path);
      if (checkedAt !== undefined && isCheckDue(db, checkedAt)) check(db);
      return snapshotOf(db, { path, patiently });
    };
    const found = openWith(db, path, prepare, timeoutMs);
    if (typeof found !== 'number') return found;
    db.close();
    return found === 0 ? undefined : openSnapshot(path);
  });
}

function snapshotOf(
  db: Database.Database,
  { path, patiently, token = { own: undefined } }: { path: string; patiently: Wait; token?: Token },
): Snapshot {
  db.exec(stagingTables);
  const parts = partsIn(statementsOf(db));
  const fence = fenceIn(db, path, token);
  const { immediate, deferred } = transactionsOf(db);
  // Within another transaction the work is part of that transaction: a failure undoes everything.
  const within = <T>(begin: () => T, work: () => T): T =>
    db.inTransaction ? work() : patiently(begin);
  const checked = <T>(work: () => T): T => {
    fence.check();
    return work();
  };
  return {
    ...parts,
    fence: (least) => patiently(() => immediate(() => fence.raise(least))),
    withdrawFence: () => patiently(() => immediate(fence.withdraw)),
    generation: fence.generation,
    fileNumber: () => (db.memory ? '' : String(statSync(path).ino)),
    stage(work) {
      try {
        within(() => deferred(() => checked(work)), work);
      } catch (error) {
        parts.staging.clearForms();
        throw error;
      }
    },
    transaction: (work) => within(() => immediate(() => checked(work)), work),
    copy: async (file, { at, signal }) => {
      const note = (copy: Database.Database): void => {
        if (at === undefined) return;
        const statements = statementsOf(copy);
        const { mendDecisions, unsignAhead } = holdsIn(statements);
        metaIn(statements).set(copiedKey, String(at));
        // All of them are older than the copy, whatever their clocks showed.
        mendDecisions({ at });
        unsignAhead({ at });
      };
      return copyOf(db, file, { signal, note });
    },
    sibling() {
      const other = openToWrite(path, 'the snapshot');
      return openWith(other, path, (wait) => {
        setPragmas(other, { cacheKb: 2_000 });
        return snapshotOf(other, { path, patiently: wait, token });
      });
    },
    close: () => db.close(),
  };
}
