/** Formats everything recorded of one person or template as lines for people. */
import { renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { absenceWords } from '../lookup/missing-people.ts';
import { memberWords, timeWords } from '../lookup/person-text.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import type { RecordDocument } from './record-document.ts';
import type { RecordedEntry } from './recorded-entry.ts';

/** Returns the lines, one section for each kind of fact. */
export function recordLines(document: RecordDocument): Line[] {
  const { mirror, kind, key } = document;
  const what = kind === 'template' ? `template ${key}` : key;
  const sections = [...recordSections(document), ['As it is stored', rawLines(document)] as const];
  return [
    styled('bold', `${what} in ${mirror}`),
    ...sections
      .filter(([, lines]) => lines.length > 0)
      .flatMap(([title, lines]) => [
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
  const { recorded } = document;
  const sections: [string, readonly string[]][] = [
    ['Recorded', recorded ? recordedLines(recorded, document) : ['nothing']],
    ['Channels', recorded ? channelLines(recorded) : []],
    ['Open changes', document.open.map(openWords)],
    ['Awaiting approval', document.awaitingApproval.map(awaitingWords)],
    ['Problems', document.problems.map(problemWords)],
    ['Refused by the platform', document.refused.map(refusedWords)],
    ['Reported to the CRM', document.reports.map(reportWords)],
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
  return [
    ownershipWords[ownership],
    id === null ? 'vanished from the platform' : `id ${id} on the platform`,
    ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
    ...(crmIds.length === 0 ? [] : [`CRM id ${crmIds.join(', ')}`]),
    `last seen ${seenAt ?? 'never'}`,
    settled ? 'nothing was left to do' : 'the next run that reads it decides anew',
    ...(reset ? ['reset: the next run reads it on the platform'] : []),
    ...(readAgain && !reset ? ['the next full run compares it with the platform'] : []),
    ...(allMail ? [allMailWords(allMail)] : []),
    ...(entry.protected ? ['protected by contacts.protect'] : []),
    ...(entry.allowed ? ['its erasure was taken back, and the platform not read since'] : []),
    ...(entry.renamed.length > 0 ? [`under another address: ${entry.renamed.join(', ')}`] : []),
    ...(absence ? [absenceWords(absence)] : []),
  ];
}

function allMailWords({ causes, after, until }: NonNullable<RecordedEntry['allMail']>): string {
  const when = until === null ? '' : `, ${timeWords({ after, until })}`;
  return `opted out of all mail (${causes.join(', ') || 'cause unknown'})${when}`;
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

function openWords({ op, part, state, run, plannedAt, sentAt }: RecordDocument['open'][number]) {
  const where = part === '' ? '' : ` in ${part}`;
  const when = sentAt === null ? `planned ${plannedAt}` : `sent ${sentAt}`;
  const outcome = state === 'unknown' ? ', its outcome is not known' : '';
  return `${changeName(op, false)}${where}: ${when}${outcome} (run ${run})`;
}

function awaitingWords({
  guard,
  channel,
  since,
  until,
}: RecordDocument['awaitingApproval'][number]) {
  const where = channel === null ? '' : ` in ${channel}`;
  const when = since === null ? '' : ` since ${since}`;
  return `guards.${guard}${where}${when}${until === null ? '' : `, until ${until}`}`;
}

function problemWords(problem: RecordDocument['problems'][number]): string {
  const { class: of, part, place, reason, fix, since } = problem;
  const where = [part, place ?? ''].filter((word) => word !== '').join(', ');
  return `${of}${where === '' ? '' : ` (${where})`} since ${since}: ${renderProblem({ reason, fix })}`;
}

function refusedWords({ part, to, attempts, retryAt }: RecordDocument['refused'][number]): string {
  const where = part === '' ? 'the whole record' : part;
  const until = retryAt === null ? 'when the record changes, or `retry`' : `from ${retryAt}`;
  return `${where}${to === null ? '' : `, contact ${to}`}: tried ${counted(attempts, 'time')}, again ${until}`;
}

function reportWords({ channel, crmId, cause, state, since }: RecordDocument['reports'][number]) {
  const where = channel === '*' ? 'all mail' : channel;
  return `${cause} of ${where} for CRM id ${crmId}: ${state}, since ${since}`;
}

/** Returns the stored columns; the content of a template is left to --json. */
function rawLines({ kind, raw }: RecordDocument): string[] {
  if (!raw) return [];
  const { body, ...columns } = raw;
  return [
    ...Object.entries(columns).map(([name, value]) => `${name}: ${value ?? 'null'}`),
    kind === 'template' ? 'body: --json shows it' : `body: ${JSON.stringify(body)}`,
  ];
}
