/** Collects everything that the snapshot records of one person or template in one document. */
import { guardClasses } from '../../domain/guard-classes.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import { absenceOf } from '../lookup/missing-people.ts';
import { keyOfHash, type Names, wordOf } from '../lookup/person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { entriesIn } from './recorded-entry.ts';

/** A record of the snapshot. */
export interface RecordName {
  kind: RecordTypeName;
  key: Key;
}

/** The snapshot of a mirror, its configuration, and how records are named. */
export interface Recorded {
  config: Config;
  snapshot: Snapshot;
  names: Names;
}

/** The document of `state show`. */
export type RecordDocument = ReturnType<typeof documentOf>;

/**
 * Returns the record that a word means: an address, a hash, an id of the CRM, or the key or name of
 * a template. Only the snapshot is read. Throws Invalid if it knows no such record.
 */
export async function recordNamed(who: string, snapshot: Snapshot): Promise<RecordName> {
  const word = wordOf(who);
  if (word.includes('@')) return { kind: 'contact', key: word };
  const hashed = word.startsWith('#') ? await keyOfHash(word, snapshot) : undefined;
  if (hashed !== undefined) return { kind: 'contact', key: hashed };
  if (snapshot.recorded.get('template', word)) return { kind: 'template', key: word };
  const [byId] = snapshot.recorded.keysOfOrigin('contact', word);
  if (byId !== undefined) return { kind: 'contact', key: byId };
  const byName = templateNamed(word, snapshot);
  if (byName !== undefined) return { kind: 'template', key: byName };
  throw new Invalid(`"${word}" names nothing that is recorded`, {
    fix: 'give an address, a hash as `crm-mirror state list` shows it, a CRM id, or the key or name of a template',
  });
}

/** Returns the key of the recorded template with this name on the platform. */
function templateNamed(name: string, snapshot: Snapshot): Key | undefined {
  const entryOf = entriesIn({ snapshot, names: ({ key }) => key });
  const most = snapshot.recorded.count('template');
  const rows = snapshot.recorded.next('template', '', most);
  return rows.find((row) => entryOf(row).name === name)?.key;
}

/** Returns what is recorded of a record. */
export function documentOf({ config, snapshot, names }: Recorded, { kind, key }: RecordName) {
  const row = snapshot.recorded.get(kind, key);
  const problems = problemsOf(snapshot, { kind, key });
  return {
    mirror: config.mirror,
    kind,
    key: names({ kind, key }),
    /** Null if the snapshot has no row of it. */
    recorded: row ? entriesIn({ snapshot, names })(row) : null,
    /** How long full runs have not found the person in the CRM; null if the last one did. */
    absence: absenceOf(
      snapshot.absences.get(kind, key),
      row,
      absenceRulesOf(config),
      snapshot.recorded.successors(kind, key).length > 0,
    ),
    problems,
    /** Refused changes, which are not sent again until the record changes or a time has come. */
    refused: snapshot.problems.parked(kind, key).map((one) => ({
      part: one.part,
      to: one.target === '' ? null : one.target,
      attempts: one.attempts,
      retryAt: instantOrNull(one.retryAt),
      since: instant(one.since),
    })),
    awaitingApproval: awaitingOf({ config, snapshot }, key),
    /** Changes that are planned, or sent and not answered. */
    open: openOf(snapshot, { kind, key }),
    /** Reports of opt-outs to the CRM. */
    reports: snapshot.optOutReports.of(kind, key).map((one) => ({
      channel: one.channel,
      crmId: names({ kind, key: one.crmId }),
      cause: one.cause,
      state: one.state,
      since: instant(one.plannedAt),
      endedAt: instantOrNull(one.endedAt),
    })),
    /** The row as it is stored; null if there is none. */
    raw: row ? rawOf(row, names) : null,
  };
}

function problemsOf({ problems, recorded }: Snapshot, { kind, key }: RecordName) {
  // The problem of an invalid record without an address is stored under its id.
  const keys = [key, ...recorded.originsOf(kind, key).map((id) => `id ${id}`)];
  return keys
    .flatMap((one) => problems.counted.list(kind, one))
    .map(({ class: of, cause, part, place, reason, fix, since }) => {
      return { class: of, cause, part, place, reason, fix, since: instant(since) };
    });
}

function awaitingOf({ config, snapshot }: Pick<Recorded, 'config' | 'snapshot'>, key: Key) {
  return guardClasses.flatMap(({ id: guard, configKey }) => {
    const { holdForMs } = config.guards[configKey];
    return snapshot.awaitingApproval.of(guard, key).map(({ part, at }) => ({
      guard: configKey,
      /** Null if the guard withholds all changes that it counts. */
      channel: part === '' ? null : part,
      since: at === 0 ? null : instant(at),
      until: holdForMs === undefined || at === 0 ? null : instant(at + holdForMs),
    }));
  });
}

const openStates: ReadonlySet<string> = new Set(['planned', 'sent', 'unknown']);
const changesRead = 1_000;

function openOf({ recordHistory }: Snapshot, { kind, key }: RecordName) {
  return recordHistory
    .changes(kind, key, changesRead)
    .filter(({ state }) => openStates.has(state))
    .map(({ run, op, part, state, plannedAt, sentAt }) => {
      const at = { plannedAt: instant(plannedAt), sentAt: instantOrNull(sentAt) };
      return { run, op, part, state, ...at };
    });
}

/** Returns the stored values. A text of a person that holds an address is named like a person. */
function rawOf({ body, ...row }: RecordedRow, names: Names) {
  const { kind, id, ownership, shown, desired, seenAt } = row;
  const named = (_: string, value: unknown): unknown =>
    kind === 'contact' && typeof value === 'string' ? names({ kind, key: value }) : value;
  const parsed: unknown = JSON.parse(body, named);
  const rest = { shown: shown ?? null, desired: desired ?? null, seen_at: seenAt };
  return { id: id ?? null, ownership, ...rest, body: parsed };
}
