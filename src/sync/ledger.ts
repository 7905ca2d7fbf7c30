/** A snapshot and its ledger: which belongs to which. */
import type { Key, RecordedRow } from '../model/record.ts';
import type { Mirror } from './mirror.ts';

/** Under which the snapshot keeps the id of its ledger. */
export const ledgerName = 'ledger';

const pageOfRows = 500;

/**
 * Has the snapshot know its ledger. One that it does not know yet first takes in all that is
 * recorded: either of them may be new.
 */
export function bindLedger(mirror: Mirror): void {
  const { meta, transaction } = mirror.snapshot;
  if (meta.get(ledgerName) === mirror.ledger.id) return;
  fill(mirror);
  transaction(() => meta.set(ledgerName, mirror.ledger.id));
}

function fill({ parts, snapshot, ledger, clock }: Mirror): void {
  for (const { kind } of parts) {
    for (let after: Key | undefined = ''; after !== undefined && kind.ledger;) {
      const rows: RecordedRow[] = snapshot.recorded.next(kind.name, after, pageOfRows);
      const { memories } = kind.ledger;
      const remarks = rows.map((row) => ({
        key: row.key,
        ids: snapshot.recorded.originsOf(kind.name, row.key),
        adds: memories(row),
        ends: [],
      }));
      ledger.write(
        remarks.filter(({ adds }) => adds.length > 0),
        clock.now(),
      );
      after = rows.at(-1)?.key;
    }
  }
}
