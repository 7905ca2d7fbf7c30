/** A snapshot and its ledger: which belongs to which, and how far the one knows the other. */
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { KnownLedger } from '../../do-not-contact/list-file.ts';
import type { Meta } from '../../snapshot/database/meta-table.ts';
import type { Mirror } from './mirror-context.ts';

/** Under which the snapshot keeps the id of its ledger, and how often it was written. */
const names = { id: 'ledger', reached: 'ledger-reached' } as const;

const pageOfRows = 500;

/** What the snapshot knows of its ledger; one of an older version does not know how far it got. */
export function boundDoNotContactList(meta: Meta): KnownLedger | undefined {
  const id = meta.get(names.id);
  return id === undefined ? undefined : { id, reached: Number(meta.get(names.reached) ?? 0) };
}

/**
 * Has the snapshot know its ledger, and from now on hear of every write: before anything that
 * depends on it, or within the same transaction. A ledger that it does not know yet first takes in
 * all that is recorded: either of them may be new.
 */
export function bindDoNotContactList(mirror: Mirror): void {
  const { snapshot, doNotContact } = mirror;
  const { meta, transaction } = snapshot;
  const keep = (reached: number) => meta.set(names.reached, String(reached));
  const known = boundDoNotContactList(meta);
  // How far another has got says nothing of the one that the snapshot still knows.
  const hear = (reached: number) => meta.get(names.id) === doNotContact.id && keep(reached);
  doNotContact.follow((reached) => transaction(() => void hear(reached)));
  if (known?.id !== doNotContact.id) fill(mirror);
  const reached = doNotContact.reached();
  if (known?.id !== doNotContact.id || known.reached !== reached) {
    transaction(() => {
      meta.set(names.id, doNotContact.id);
      keep(reached);
    });
  }
}

function fill({ parts, snapshot, doNotContact, clock }: Mirror): void {
  for (const { type } of parts) {
    for (let after: Key | undefined = ''; after !== undefined && type.doNotContact;) {
      const rows: RecordedRow[] = snapshot.recorded.next(type.name, after, pageOfRows);
      const { memories } = type.doNotContact;
      const remarks = rows.map((row) => ({
        key: row.key,
        ids: snapshot.recorded.originsOf(type.name, row.key),
        adds: memories(row),
        ends: [],
      }));
      doNotContact.write(
        remarks.filter(({ adds }) => adds.length > 0),
        clock.now(),
      );
      after = rows.at(-1)?.key;
    }
  }
}
