/** Examines one person for a command, and collects what was found in one document. */
import type { Config } from '../../config/config.ts';
import { type ExpectedError, Interrupted, Invalid, isExpected } from '../../domain/errors.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import { examine, type Examined } from '../../engine/examine-person.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/platform.ts';
import { rulesOf } from '../../records/contact/consent/facts.ts';
import { mappedColumns, withDates } from '../../records/contact/observe/column-meanings.ts';
import type { RecordType } from '../../records/record-type.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import type { Assembled, Shell } from '../../compose/process-shell.ts';
import { type ExplainedPerson, type Explaining, explainedOf } from './person-document.ts';

/** What is asked about a person, and how people are named in the document. */
export interface Asking extends Pick<Explaining, 'names' | 'addresses' | 'changes'> {
  config: Config;
  key: Key;
  offline: boolean;
}

/** What was found of a person. */
export interface FoundPerson {
  document: ExplainedPerson;
  /** The full contacts as the platform returns them. */
  details: Contact[];
  /** Why not all of them could be read. */
  unread: ExpectedError | undefined;
}

/** Reads the CRM, the snapshot and the platform. Throws Invalid if the mirror has no contacts. */
export async function examinePerson(
  { mirror, platform }: Assembled,
  { stop, abort }: Pick<Shell, 'stop' | 'abort'>,
  { config, key, offline, ...shown }: Asking,
): Promise<FoundPerson> {
  const read: Explaining['read'][number][] = [];
  const watched = watchRecords(mirror, key, (record) => void read.push(record));
  const found = await examine(watched, { key, offline, stop, abort, progress: () => undefined });
  const { contacts, policy } = config;
  if (!found || !contacts) throw new Invalid(`${config.mirror} has no contacts`);
  const { details, unread } = await detailsOf(found, platform.contacts, stop);
  const dates = 'sizes' in found.source ? found.source.sizes.dateColumns : [];
  const columns = mappedColumns(contacts, () => mirror.clock.now());
  const document = explainedOf({
    mirror: config.mirror,
    rules: rulesOf(contacts, policy, absenceRulesOf(config)),
    found,
    read,
    columns: columns.map((column) => withDates(column, dates)),
    details,
    snapshot: mirror.snapshot,
    config,
    ...shown,
  });
  return { document, details, unread };
}

/**
 * Returns the mirror with a source that also passes on the records that may be the person's as they
 * are read: those with the address, also within a cell that is none, and those with a known id.
 */
function watchRecords(
  mirror: Mirror,
  key: Key,
  hear: (record: Explaining['read'][number]) => void,
): Mirror {
  const parts = mirror.parts.map((part) => {
    const ids = mirror.snapshot.recorded.originsOf(part.type.name, key);
    const mayBe = ({ id, alias }: DesiredRow): boolean =>
      ids.includes(id) || alias.split(/[\s,;:<>()[\]"'|]+/).includes(key);
    const desire: RecordType['desire'] = (value, place) => {
      const row = part.type.desire(value, place);
      if (row.key === key || mayBe(row)) hear({ place, value, invalid: row.invalid });
      return row;
    };
    return { ...part, type: { ...part.type, desire } };
  });
  return { ...mirror, parts };
}

/** Returns the full contacts as the platform shows them, up to one that cannot be read this way. */
async function detailsOf(
  { unread, states }: Examined,
  contacts: Platform['contacts'],
  signal: AbortSignal,
): Promise<Pick<FoundPerson, 'details' | 'unread'>> {
  const details: Contact[] = [];
  if (unread) return { details, unread: undefined };
  for (const { id } of states.observed) {
    try {
      const contact = await contacts.retrieve(id, { signal });
      if (contact) details.push(contact);
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      return { details, unread: error };
    }
  }
  return { details, unread: undefined };
}
