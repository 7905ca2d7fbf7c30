/** Collects everything that the snapshot records of one person or template in one document. */
import { guardClasses } from '../../domain/guard-classes.ts';
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { RecordedRow } from '../../domain/record.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import { absenceOf, absenceWords } from '../lookup/missing-people.ts';
import { keyOfHash, type Names, type RecordName, wordOf } from '../lookup/person-names.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { entriesIn, type RecordedEntry } from './recorded-entry.ts';
import { counted } from '../../domain/values/counted.ts';
import { memberWords, timeWords } from '../lookup/person-text.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';

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
  const describe = entriesIn({ snapshot, names: ({ key }) => key });
  const templates = snapshot.recorded.next('template', '', snapshot.recorded.count('template'));
  const byName = templates.find((row) => describe(row).name === word);
  if (byName) return { kind: 'template', key: byName.key };
  throw new Invalid(`"${word}" names nothing that is recorded`, {
    fix: 'give an address, a hash as `crm-mirror state list` shows it, a CRM id, or the key or name of a template',
  });
}

/** Returns what is recorded of a record. `names` names records. */
export function documentOf(
  { config, snapshot, names }: { config: Config; snapshot: Snapshot; names: Names },
  { kind, key }: RecordName,
) {
  const { recorded, problems, awaitingApproval, recordHistory } = snapshot;
  const row = recorded.get(kind, key);
  // The problem of an invalid record without an address is stored under its id.
  const keys = [key, ...recorded.originsOf(kind, key).map((id) => `id ${id}`)];
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
      recorded.successors(kind, key).length > 0,
    ),
    problems: keys
      .flatMap((one) => problems.counted.list(kind, one))
      .map(({ class: of, cause, part, place, reason, fix, since }) => {
        return { class: of, cause, part, place, reason, fix, since: instant(since) };
      }),
    /** Refused changes, which are not sent again until the record changes or a time has come. */
    refused: problems.parked(kind, key).map((one) => ({
      part: one.part,
      to: one.target === '' ? null : one.target,
      attempts: one.attempts,
      retryAt: instantOrNull(one.retryAt),
      since: instant(one.since),
    })),
    awaitingApproval: guardClasses.flatMap(({ id: guard, configKey }) => {
      const { holdForMs } = config.guards[configKey];
      return awaitingApproval.of(guard, key).map(({ part, at }) => ({
        guard: configKey,
        /** Null if the guard withholds all changes that it counts. */
        channel: part === '' ? null : part,
        since: at === 0 ? null : instant(at),
        until: holdForMs === undefined || at === 0 ? null : instant(at + holdForMs),
      }));
    }),
    /** Changes that are planned, or sent and not answered. */
    open: recordHistory
      .changes(kind, key, changesRead)
      .filter(({ state }) => openStates.has(state))
      .map(({ run, op, part, state, plannedAt, sentAt }) => {
        const at = { plannedAt: instant(plannedAt), sentAt: instantOrNull(sentAt) };
        return { run, op, part, state, ...at };
      }),
    /** Reports of opt-outs to the CRM. */
    reports: snapshot.optOutReports.of(kind, key).map((one) => ({
      channel: one.channel,
      crmId: names({ kind, key: one.crmId }),
      cause: one.cause,
      state: one.state,
      since: instant(one.plannedAt),
      endedAt: instantOrNull(one.endedAt),
    })),
    /**
     * The row as it is stored; null if there is none. A text of a person that holds an address is
     * named like a person.
     */
    raw: row ? storedRow(row, names) : null,
  };
}

function storedRow({ body, ...row }: RecordedRow, names: Names) {
  const { kind, id, ownership, shown, desired, seenAt } = row;
  const named = (_: string, value: unknown): unknown =>
    kind === 'contact' && typeof value === 'string' ? names({ kind, key: value }) : value;
  const parsed: unknown = JSON.parse(body, named);
  const rest = { shown: shown ?? null, desired: desired ?? null, seen_at: seenAt };
  return { id: id ?? null, ownership, ...rest, body: parsed };
}

const openStates: ReadonlySet<string> = new Set(['planned', 'sent', 'unknown']);
const changesRead = 1_000;

/** Returns the lines, one section for each kind of fact. */
export function recordLines(document: RecordDocument): Line[] {
  const { mirror, kind, key, raw } = document;
  const { body, ...columns } = raw ?? {};
  // The content of a template is left to --json.
  const stored = [
    ...Object.entries(columns).map(([name, value]) => `${name}: ${value ?? 'null'}`),
    kind === 'template' ? 'body: --json shows it' : `body: ${JSON.stringify(body)}`,
  ];
  const sections = [...recordSections(document)];
  if (raw) sections.push(['As it is stored', stored]);
  const what = kind === 'template' ? `template ${key}` : key;
  return [
    styled('bold', `${what} in ${mirror}`),
    ...sections.flatMap(([title, lines]) => [
      '',
      styled('bold', title),
      ...lines.map((line) => `  ${line}`),
    ]),
  ];
}

/** Returns what is recorded, but not how it is stored; a section without facts is left out. */
export function recordSections(
  document: RecordDocument,
): [title: string, lines: readonly string[]][] {
  const { recorded, open, awaitingApproval, problems, refused, reports } = document;
  const sections: [string, readonly string[]][] = [
    ['Recorded', recorded ? recordedLines(recorded, document) : ['nothing']],
    ['Channels', recorded ? channelLines(recorded) : []],
    [
      'Open changes',
      open.map(({ op, part, state, run, plannedAt, sentAt }) => {
        const where = part === '' ? '' : ` in ${part}`;
        const when = sentAt === null ? `planned ${plannedAt}` : `sent ${sentAt}`;
        const outcome = state === 'unknown' ? ', its outcome is not known' : '';
        return `${changeName(op, false)}${where}: ${when}${outcome} (run ${run})`;
      }),
    ],
    [
      'Awaiting approval',
      awaitingApproval.map(({ guard, channel, since, until }) => {
        const where = channel === null ? '' : ` in ${channel}`;
        const when = since === null ? '' : ` since ${since}`;
        return `guards.${guard}${where}${when}${until === null ? '' : `, until ${until}`}`;
      }),
    ],
    [
      'Problems',
      problems.map(({ class: of, part, place, reason, fix, since }) => {
        const where = [part, place ?? ''].filter((word) => word !== '').join(', ');
        return `${of}${where === '' ? '' : ` (${where})`} since ${since}: ${renderProblem({ reason, fix })}`;
      }),
    ],
    [
      'Refused by the platform',
      refused.map(({ part, to, attempts, retryAt }) => {
        const where = `${part === '' ? 'the whole record' : part}${to === null ? '' : `, contact ${to}`}`;
        const until = retryAt === null ? 'when the record changes, or `retry`' : `from ${retryAt}`;
        return `${where}: tried ${counted(attempts, 'time')}, again ${until}`;
      }),
    ],
    [
      'Reported to the CRM',
      reports.map(({ channel, crmId, cause, state, since }) => {
        const where = channel === '*' ? 'all mail' : channel;
        return `${cause} of ${where} for CRM id ${crmId}: ${state}, since ${since}`;
      }),
    ],
  ];
  return sections.filter(([, lines]) => lines.length > 0);
}

const ownershipWords = {
  created: 'ours: a run created it',
  adopted: 'ours: it was there, and a run adopted it',
  noted: 'not ours: only what must be remembered of it is recorded',
};

function recordedLines(entry: RecordedEntry, { absence }: RecordDocument): string[] {
  const { ownership, id, name, crmIds, seenAt, settled, readAgain, reset, allMail } = entry;
  const left =
    allMail && allMail.until !== null ? `, ${timeWords({ ...allMail, until: allMail.until })}` : '';
  return [
    ownershipWords[ownership],
    id === null ? 'vanished from the platform' : `id ${id} on the platform`,
    ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
    ...(crmIds.length === 0 ? [] : [`CRM id ${crmIds.join(', ')}`]),
    `last seen ${seenAt ?? 'never'}`,
    settled ? 'nothing was left to do' : 'the next run that reads it decides anew',
    ...(reset ? ['reset: the next run reads it on the platform'] : []),
    ...(readAgain && !reset ? ['the next full run compares it with the platform'] : []),
    ...(allMail
      ? [`opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})${left}`]
      : []),
    ...(entry.protected ? ['protected by contacts.protect'] : []),
    ...(entry.allowed ? ['its erasure was taken back, and the platform not read since'] : []),
    ...(entry.renamed.length > 0 ? [`under another address: ${entry.renamed.join(', ')}`] : []),
    ...(absence ? [absenceWords(absence)] : []),
  ];
}

const causeWords: Readonly<Record<string, string>> = {
  stated: 'the CRM states it',
  absence: 'missing from the CRM',
  flag: 'deleted in the CRM',
  address: 'the CRM has another address',
  undone: '`undo` took our opt-in back',
};

function channelLines({ channels, defaults }: RecordedEntry): string[] {
  return Object.entries(channels).map(([channel, is]) => {
    const { cause, acknowledgedAt, statedBy, released, resolved } = is;
    const more = [
      ...(cause === null ? [] : [causeWords[cause] ?? cause]),
      ...(acknowledgedAt === null ? [] : [`acknowledged ${acknowledgedAt}`]),
      ...(statedBy.length === 0 ? [] : [`stated by CRM id ${statedBy.join(', ')}`]),
      ...(released ? ['released by `allow`'] : []),
      ...(defaults.includes(channel) ? ['set by the creation, by nobody'] : []),
      ...(resolved ? [`resolved as an opt-in by ${resolved.by}: ${resolved.reason}`] : []),
    ];
    return [`${channel}: ${memberWords(is)}`, ...more].join(', ');
  });
}
