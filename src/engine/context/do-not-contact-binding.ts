/** Binds a snapshot to its memory: to its id, and to the number of the list's last known write. */
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { Meta } from '../../store/database/meta-table.ts';
import type { Mirror } from './mirror-context.ts';
import { memoriesOf } from '../../records/contact/consent/do-not-contact-entries.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';

const names = { id: 'memory', reached: 'memory-reached' } as const;

const pageOfRows = 500;

/** Returns what the snapshot knows about its memory; undefined if it has none yet. */
export function boundMemory(meta: Meta): { id: string; reached: number } | undefined {
  const id = meta.get(names.id);
  return id === undefined ? undefined : { id, reached: Number(meta.get(names.reached) ?? 0) };
}

/**
 * Binds the snapshot to the list. From then on the snapshot stores the number of every write,
 * either before anything that depends on the write or in the same transaction. A new list first
 * receives all recorded facts.
 */
export function bindDoNotContactList(mirror: Mirror): void {
  const { snapshot, doNotContact, contacts, clock } = mirror;
  const { meta, transaction, recorded } = snapshot;
  const keep = (reached: number) => meta.set(names.reached, String(reached));
  const known = boundMemory(meta);
  const isBound = known?.id === doNotContact.id;
  // While the snapshot is still bound to another list, the count of this one is not stored.
  const hear = (reached: number) => meta.get(names.id) === doNotContact.id && keep(reached);
  doNotContact.follow((reached) => transaction(() => void hear(reached)));
  for (let after: Key | undefined = isBound || !contacts ? undefined : ''; after !== undefined;) {
    const rows: RecordedRow[] = recorded.next('contact', after, pageOfRows);
    const remarks = rows.map((row) => {
      const ids = recorded.originsOf('contact', row.key);
      return { key: row.key, ids, adds: memoriesOf(decodeContact.recorded(row)), ends: [] };
    });
    const news = remarks.filter(({ adds }) => adds.length > 0);
    doNotContact.write(news, clock.now());
    after = rows.at(-1)?.key;
  }
  const reached = doNotContact.reached();
  if (isBound && known.reached === reached) return;
  transaction(() => {
    meta.set(names.id, doNotContact.id);
    keep(reached);
  });
}
