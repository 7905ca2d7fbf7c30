/** What the tables of a memory share: its statements, its keys, and how it is written. */
import type Database from 'better-sqlite3';
import { onDisk, type Wait } from '../database/database-access.ts';
import { metaIn } from '../database/meta-table.ts';
import { statementsOf, transactionsOf } from '../database/prepared-statements.ts';
import { keyFor, type MemoryKey } from './memory-key.ts';

/** How long what may be lost waits for another process, in milliseconds. */
const glanceMs = 50;

export type MemoryTables = ReturnType<typeof tablesOf>;

/** `patiently` runs a statement. */
export function tablesOf(
  db: Database.Database,
  { secret }: MemoryKey,
  patiently: Wait,
  statements = statementsOf(db, patiently),
) {
  const transactions = transactionsOf(db);
  const meta = metaIn(statements);
  return {
    ...statements,
    meta,
    id: meta.get('id') ?? '',
    keyFor: (purpose: string): Buffer => keyFor(`crm-mirror ${purpose}`, secret),
    immediately: <T>(work: () => T): T => patiently(() => transactions.immediate(work)),
    /** For what may be lost: it hardly waits for another process. */
    hastily<T>(work: () => T): T {
      const usual = Number(db.pragma('busy_timeout', { simple: true }));
      db.pragma(`busy_timeout = ${glanceMs}`);
      try {
        return onDisk(db.name, () => transactions.immediate(work));
      } finally {
        db.pragma(`busy_timeout = ${usual}`);
      }
    },
    /** Yields rows, and throws for them what every other query throws. */
    *rows<Row>(rows: IterableIterator<Row>): Generator<Row> {
      try {
        for (;;) {
          const step = patiently(() => rows.next());
          if (step.done) return;
          yield step.value;
        }
      } finally {
        rows.return?.();
      }
    },
  };
}
