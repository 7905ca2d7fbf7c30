/** Formats everything known about one person as lines for people. */
import { approvalWords } from '../../compose/output/decision-words.ts';
import { renderProblem } from '../../domain/errors.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import { type ExplainedPerson, canaryLines, columnLines } from './person-document.ts';
import { heldLines } from './held-changes.ts';
import { absenceWords } from './missing-people.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { cell } from '../../compose/output/visible-text.ts';

type Channel = NonNullable<ExplainedPerson['channels']>[number];
type Recorded = NonNullable<ExplainedPerson['snapshot']>;
type Shown = ExplainedPerson['platform']['contacts'][number];

/** Renders the answer first: what a run would do, and why. `isVerbose`: with every rule tried. */
export function explainedLines(document: ExplainedPerson, isVerbose: boolean): Line[] {
  const sections = explainedSections(document, isVerbose);
  return [
    styled('bold', headOf(document)),
    ...sections.flatMap(([title, lines]) => [
      '',
      styled('bold', title),
      ...lines.map((line) => `  ${line}`),
    ]),
  ];
}

/** Returns the sections of this text, each with its heading; one without lines is left out. */
export function explainedSections(
  document: ExplainedPerson,
  isVerbose: boolean,
): [title: string, lines: readonly string[]][] {
  const sections: [string, readonly string[]][] = [
    ['What a run would do', answerLines(document)],
    ['CRM', crmLines(document)],
    ['Snapshot', snapshotLines(document)],
    ['Platform', platformLines(document)],
    ['Do-not-contact list', ledgerLines(document)],
    ['Awaiting approval', heldLines(document.held)],
    ['Canary', canaryLines(document.canaries)],
    ['Refused, and skipped until it changes', parkedLines(document)],
    ['What happened, the newest first', historyLines(document)],
    ...(isVerbose ? (document.channels ?? []) : []).map((channel): [string, string[]] => [
      `Rules tried for ${channel.channel}`,
      ruleLines(channel),
    ]),
  ];
  return sections.filter(([, lines]) => lines.length > 0);
}

/** Names the person, or says where nobody knows them. */
export function headOf({ mirror, person, known, crm, platform }: ExplainedPerson): string {
  if (known) return `${person} in ${mirror}`;
  const places = [
    ...(crm.read ? ['the CRM'] : []),
    'the snapshot and the do-not-contact list',
    ...(platform.read ? ['the platform'] : []),
  ];
  const others = crm.read && platform.read ? '' : ' Not every place could be asked.';
  return `${person} in ${mirror}: unknown to ${places.join(', ')}.${others}`;
}

function crmLines({ crm }: ExplainedPerson): string[] {
  if (!crm.read) return [`could not be read, so nothing is decided: ${crm.why}`];
  const records = crm.records.map((record) => {
    const { place, id, presence, wants, consentAt, consentEarly, invalid } = record;
    const wishes = Object.entries(wants).flatMap(([channel, wish]) => {
      if (wish === null) return invalid ? [] : [`${channel} no opinion`];
      return [`${channel} ${stateWords(wish)}`];
    });
    const about = [
      ...presenceWords[presence],
      ...(wishes.length > 0 ? [wishes.join(', ')] : []),
      ...(consentAt === null ? [] : [`stated ${consentAt}`]),
      ...(consentEarly
        ? ['that was in the future when it was first read, so it never counts']
        : []),
      ...(invalid ? [`INVALID: ${renderProblem(invalid)}`] : []),
    ];
    return `${place}${id === '' ? '' : `, id ${id}`}: ${about.join('; ')}`;
  });
  const certificate = crm.certified
    ? []
    : [`not read completely, so only opt-outs are applied: ${crm.why}`];
  const mentions = crm.mentions.map(
    ({ place, ...why }) => `${place} names this person, and cannot be read: ${renderProblem(why)}`,
  );
  const all = [...records, ...mentions];
  return [...(all.length > 0 ? all : ['does not name this person']), ...certificate];
}

const presenceWords = {
  present: [],
  flagged: ['deleted there'],
  outside: ['out of scope'],
};

/** Returns a line for each entry of the do-not-contact list. */
function ledgerLines({ ledger }: Pick<ExplainedPerson, 'ledger'>): string[] {
  return ledger.map(({ channel, cause, through, after, until }) => {
    const where = channel === '*' ? 'all mail' : channel;
    const how = through === 'id' ? ', by the CRM id' : '';
    return `${cause} of ${where}, ${timeWords({ after, until })}${how}`;
  });
}

function snapshotLines({ snapshot }: ExplainedPerson): string[] {
  if (!snapshot) return ['nothing is recorded: not ours'];
  const { ownership, id, seenAt, crmIds, channels, former, absence, moved } = snapshot;
  const whose = { created: 'created by us', adopted: 'adopted', noted: 'not ours' }[ownership];
  const where = id === null ? 'vanished from the platform' : `contact ${id}`;
  const ids = crmIds.length === 0 ? [] : [`CRM id ${crmIds.join(', ')}`];
  const since = snapshot.left ? ` (${timeWords(snapshot.left)})` : '';
  const left = snapshot.contacts.some((contact) => contact.left)
    ? [`opted out of all mail${since}`]
    : [];
  return [
    [whose, where, ...ids, ...left, `last seen ${seenAt}`].join(', '),
    ...Object.entries(channels).map(([channel, is]) => `${channel}: ${memberWords(is)}`),
    ...(absence ? [absenceWords(absence)] : []),
    ...(former.length > 0 ? [`known before as ${former.join(', ')}`] : []),
    ...(moved ? [movedWords(moved)] : []),
  ];
}

function movedWords({ to, does }: NonNullable<Recorded['moved']>): string {
  const done = does === 'delete' ? 'a run deletes' : 'a run opts out';
  const when = 'once that is in place: subscribed or barred wherever the CRM wants it';
  return `in the CRM as ${to.join(', ')} by now: ${done} this contact ${when}`;
}

const stopWords = {
  protect: 'contacts.protect names this person',
  optIns: 'policy.optIns is off',
  sample: 'contacts.sample chooses others',
} as const;

/** Formats what is recorded for a channel, such as: opted out by this mirror */
export function memberWords({
  is,
  by,
  after,
  until,
  doubtful,
}: NonNullable<Channel['recorded']>): string {
  if (by === null) return stateWords(is);
  const made = until === null ? '' : `, made ${timeWords({ after, until })}`;
  const doubt = doubtful ? ', doubtful: no opt-out is known' : '';
  return `${is === 'opt_out' ? 'opted out' : stateWords(is)} ${by === 'us' ? 'by this mirror' : 'on the platform'}${made}${doubt}`;
}

/** Formats a time range, such as: after 2026-01-01T00:00:00Z and by 2026-01-02T00:00:00Z */
export function timeWords({
  after,
  until,
}: {
  after: string | null;
  until: string | null;
}): string {
  return `${after === null ? '' : `after ${after} and `}by ${until}`;
}

function platformLines({ platform }: ExplainedPerson): string[] {
  const stands = 'the recorded state is used instead';
  if (!platform.read) return [`not read (${platform.why}): ${stands}`];
  if (platform.contacts.length === 0) return ['does not know this person'];
  return platform.contacts.flatMap((contact) => [contactWords(contact), ...extraLines(contact)]);
}

function contactWords({ id, status, left, suppressed, channels, updatedAt }: Shown): string {
  const rows = Object.entries(channels).map(([channel, is]) => `${channel} ${stateWords(is)}`);
  const standing = [
    cell(status ?? (left ? 'opted out of all mail' : 'subscribed')),
    ...(suppressed === null ? [] : [`suppressed: ${cell(suppressed)}`]),
  ];
  const changed = updatedAt === null ? '' : ` (changed ${updatedAt})`;
  return `contact ${id}: ${[...standing, ...rows].join(', ')}${changed}`;
}

function extraLines({ notSynced }: Shown): string[] {
  if (!notSynced) return [];
  const { firstName, lastName, properties, groups } = notSynced;
  const name = [firstName, lastName].filter(Boolean).join(' ');
  const words = [
    ...(name === '' ? [] : [`name ${JSON.stringify(name)}`]),
    ...(Object.keys(properties).length === 0 ? [] : [`properties ${JSON.stringify(properties)}`]),
    ...(groups.length === 0 ? [] : [`groups ${cell(groups.join(', '))}`]),
  ];
  return words.length === 0 ? [] : [`not synced: ${words.join('; ')}`];
}

/** Answers for each channel what would happen and why, then lists what would be sent. */
function answerLines(document: ExplainedPerson): string[] {
  const { channels, crm, platform } = document;
  if (!channels) return ['nothing is decided, because the CRM could not be read'];
  return [
    ...channels.flatMap((channel) => [
      `${channel.channel}: ${answerOf(channel, crm)}`,
      ...columnLines(channel.channel, crm.records).map((line) => `    ${line}`),
      `    ${desiredWords(channel.desired, crm)}; recorded ` +
        `${channel.recorded ? memberWords(channel.recorded) : '–'}; ` +
        `the platform shows ${shownOf(channel, platform)}`,
      ...settledLines(channel).map((line) => `    ${line}`),
    ]),
    ...sendLines(document).map((line) => `to send: ${line}`),
  ];
}

/** States the decision, and the rule or gate that made it. */
function answerOf(
  { decision, tried, gates, by, row, problem, stoppedBy, desired }: Channel,
  crm: ExplainedPerson['crm'],
): string {
  const rule = tried.find(({ id }) => id === by) ?? gates.find(({ id }) => id === by);
  const number = row === 0 ? '' : ` (rule ${row})`;
  const asks = by === 'no-opinion' ? desiredWords(desired, crm) : rule?.asks;
  const why = stoppedBy === null ? (asks ?? 'no rule matches') : stopWords[stoppedBy];
  const also = problem ? `; ${renderProblem(problem)}` : '';
  return `${doneWords[decision] ?? decision}: ${why}${number}${also}`;
}

const doneWords: Readonly<Record<string, string>> = {
  create: 'create the contact and opt in',
  opt_in: 'opt in',
  opt_out: 'opt out',
  delete: 'delete',
  nothing: 'nothing to do',
  conflict: 'nothing is sent, a conflict',
};

function ruleLines({ tried, gates }: Channel): string[] {
  const rows = tried.map(({ id, row, asks, matches }) => {
    return `${matches ? 'YES' : 'no '} ${String(row).padStart(2)}  ${asks} (${id})`;
  });
  const asked = gates.map(({ id, row, asks, held }) => {
    return `${held ? 'YES' : 'no '} ${String(row ?? '').padStart(2)}  gate: ${asks} (${id})`;
  });
  const isNone = !tried.some(({ matches }) => matches);
  return [...rows, ...(isNone ? ['no rule matches'] : []), ...asked];
}

function shownOf({ observed, ours }: Channel, { contacts }: ExplainedPerson['platform']): string {
  const left = observed === 'opt_in' && contacts.find((one) => one.left);
  const but = left && `, but ${left.status ?? 'unsubscribed from all mail'}`;
  const whose = ours ? '' : ', by a contact that is not ours';
  return `${but ? `opt in for the channel${but}` : stateWords(observed)}${whose}`;
}

const stateWords = (state: string | null) => (state === null ? 'nothing' : state.replace('_', ' '));

function settledLines({ settlement }: Channel): string[] {
  if (!settlement) return [];
  const { as, by, at, reason, evidence } = settlement;
  return [`resolved as an opt-${as} by ${by}, ${at}: ${reason} (evidence: ${evidence})`];
}

/** Formats the desired state. `gone`: the person has no record that counts, or never had one. */
function desiredWords(
  desired: Channel['desired'],
  { records, mentions }: ExplainedPerson['crm'],
): string {
  if (desired === null) {
    const isInvalid = records.some(({ invalid }) => invalid);
    return isInvalid
      ? 'a CRM record is invalid, so only its opt-outs count'
      : 'the CRM has no opinion';
  }
  if (desired !== 'gone') return `the CRM wants ${stateWords(desired)}`;
  if (records.length + mentions.length === 0) return 'the CRM does not name this person';
  if (records.length === 0) return 'no valid record of the CRM names this person';
  return 'the CRM has this person as deleted, or out of scope';
}

function sendLines({ sends, keptBack, history }: ExplainedPerson): string[] {
  if (!sends) return [];
  const open = history.filter(({ outcome }) => outcome === 'sent' || outcome === 'unknown').length;
  const lines = [
    ...sends.map(changeWords),
    ...(keptBack ?? []).map((change) => `kept back: ${changeWords(change)}: ${change.asks}`),
  ];
  const waits = `the outcome of ${open} sent before is not known yet: until it is, only opt-outs are sent`;
  return [...lines, ...(open > 0 ? [waits] : [])];
}

function changeWords({ op, channel, to }: NonNullable<ExplainedPerson['sends']>[number]): string {
  const what = op.replace('_', ' ');
  return `${what}${channel === '' ? '' : ` in ${channel}`}${to === null ? '' : `, contact ${to}`}`;
}

function parkedLines({ parked }: ExplainedPerson): string[] {
  return parked.map(({ channel, reason, fix, since, attempts, retryAt }) => {
    const until = retryAt === null ? 'until the record changes, or `retry`' : `until ${retryAt}`;
    const where = channel === '' ? '' : `${channel} `;
    return `${where}since ${since}, tried ${attempts}×, ${until}: ${renderProblem({ reason, fix })}`;
  });
}

const outcomeWords: Readonly<Record<string, string>> = {
  acked: 'done',
  stale: 'not sent, because the person had changed meanwhile',
  unknown: 'outcome not known yet',
  sent: 'sent, no answer yet',
  planned: 'planned',
  rejected: 'refused by the platform',
};

function historyLines({ history }: ExplainedPerson): string[] {
  return history.map(({ at, run, op, channel, outcome, reason, fix, approval }) => {
    // The result of a creation decides about the other changes of the person.
    const isAnew = reason === plannedAgain;
    const became = isAnew ? plannedAgain : (outcomeWords[outcome] ?? outcome);
    const where = channel === '' ? '' : ` in ${channel}`;
    const why = reason === null || isAnew ? '' : `: ${renderProblem({ reason, fix })}`;
    const how = `${became} (run ${run})${approvalWords(approval)}`;
    return `${at} ${op.replace('_', ' ')}${where}: ${how}${why}`;
  });
}
