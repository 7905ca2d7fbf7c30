/** Formats everything known about one person as lines for people. */
import { renderProblem } from '../../domain/errors.ts';
import type { ExplainedPerson } from './person-document.ts';
import { absenceWords } from './missing-people.ts';
import { cell } from '../output/visible-text.ts';

type Channel = NonNullable<ExplainedPerson['channels']>[number];
type Recorded = NonNullable<ExplainedPerson['snapshot']>;
type Shown = ExplainedPerson['platform']['contacts'][number];

export function explainedLines(document: ExplainedPerson): string[] {
  return [
    headOf(document),
    ...section('CRM', crmLines(document)),
    ...section('Snapshot', snapshotLines(document)),
    ...section('Platform', platformLines(document)),
    ...section('Ledger', ledgerLines(document)),
    ...(document.channels ?? []).flatMap((channel) =>
      section(`Channel ${channel.channel}`, channelLines(channel, document)),
    ),
    ...section('What a run would send', sendLines(document)),
    ...section('Held by a guard until it is approved', heldLines(document)),
    ...section('Parked: refused, and not tried again yet', parkedLines(document)),
    ...section('What happened, the newest first', historyLines(document)),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

function headOf({ mirror, person, known, crm, platform }: ExplainedPerson): string {
  if (known) return `${person} in ${mirror}`;
  const places = [
    ...(crm.read ? ['the CRM'] : []),
    'the snapshot and the ledger',
    ...(platform.read ? ['the platform'] : []),
  ];
  const others = crm.read && platform.read ? '' : ' Not every place could be asked.';
  return `${person} in ${mirror}: unknown to ${places.join(', ')}.${others}`;
}

function crmLines({ crm }: ExplainedPerson): string[] {
  if (!crm.read) return [`could not be read, so nothing is decided: ${crm.why}`];
  const records = crm.records.map(({ place, id, presence, wants, consentAt, invalid }) => {
    const wishes = Object.entries(wants).map(([channel, wish]) => `${channel} ${wish ?? '–'}`);
    const about = [
      ...presenceWords[presence],
      wishes.join(', '),
      ...(consentAt === null ? [] : [`stated ${consentAt}`]),
      ...(invalid ? [`INVALID: ${renderProblem(invalid)}`] : []),
    ];
    return `${place}${id === '' ? '' : `, id ${id}`}: ${about.join('; ')}`;
  });
  const certificate = crm.certified
    ? []
    : [`not certified, so only opt-outs are applied: ${crm.why}`];
  return [...(records.length > 0 ? records : ['does not name this person']), ...certificate];
}

const presenceWords = {
  present: [],
  flagged: ['deleted there'],
  outside: ['out of scope'],
};

function ledgerLines({ ledger }: ExplainedPerson): string[] {
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
  const left = snapshot.contacts.some((contact) => contact.left) ? [`left all mail${since}`] : [];
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
  return `in the CRM as ${to.join(', ')} by now: ${done} this contact once that stands there`;
}

const stopWords = {
  protect: 'contacts.protect names this person',
  optIns: 'policy.optIns is off',
  sample: 'contacts.sample chooses others',
} as const;

function memberWords({ is, by, after, until, doubtful }: NonNullable<Channel['recorded']>): string {
  if (by === null) return is;
  const made = until === null ? '' : `, made ${timeWords({ after, until })}`;
  const doubt = doubtful ? ', doubtful: nobody is known to have left' : '';
  return `${is} by ${by === 'us' ? 'us' : 'the platform'}${made}${doubt}`;
}

function timeWords({ after, until }: { after: string | null; until: string | null }): string {
  return `${after === null ? '' : `after ${after} and `}by ${until}`;
}

function platformLines({ platform }: ExplainedPerson): string[] {
  const stands = 'what is recorded stands in for it';
  if (!platform.read) return [`not read (${platform.why}): ${stands}`];
  if (platform.contacts.length === 0) return ['does not know this person'];
  return platform.contacts.flatMap((contact) => [contactWords(contact), ...extraLines(contact)]);
}

function contactWords({ id, status, left, suppressed, channels, updatedAt }: Shown): string {
  const rows = Object.entries(channels).map(([channel, is]) => `${channel} ${is}`);
  const standing = [
    cell(status ?? (left ? 'left all mail' : 'subscribed')),
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

function channelLines(channel: Channel, { crm }: ExplainedPerson): string[] {
  const { desired, recorded, observed, tried, gates, decision, problem, stoppedBy } = channel;
  const gate = channel.outweighed ? `, by the gate ${channel.by}` : '';
  const rows = tried.map(({ id, row, asks, matches }) => {
    return `${matches ? 'YES' : 'no '} ${String(row).padStart(2)}  ${asks} (${id})`;
  });
  const asked = gates.map(({ id, row, asks, held }) => {
    return `${held ? 'YES' : 'no '} ${String(row ?? '').padStart(2)}  gate: ${asks} (${id})`;
  });
  const stop = stoppedBy === null ? '' : `: ${stopWords[stoppedBy]}`;
  const why = problem ? `: ${renderProblem(problem)}` : '';
  return [
    `${desiredWords(desired, crm)}; recorded ${recorded ? memberWords(recorded) : '–'}; ` +
      `the platform shows ${observed ?? '–'}`,
    ...rows,
    ...(tried.some(({ matches }) => matches) ? [] : ['no rule matches']),
    ...asked,
    `→ ${decision}${gate}${stop}${why}`,
  ];
}

/**
 * Formats the desired state. `gone` means that the person has no record that counts, whether or not
 * there ever was one.
 */
function desiredWords(desired: Channel['desired'], { records }: ExplainedPerson['crm']): string {
  if (desired !== 'gone') return `the CRM wants ${desired ?? '–'}`;
  if (records.length === 0) return 'the CRM does not name this person';
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
  return [...(lines.length > 0 ? lines : ['nothing']), ...(open > 0 ? [waits] : [])];
}

function changeWords({ op, channel, to }: NonNullable<ExplainedPerson['sends']>[number]): string {
  return `${op}${channel === '' ? '' : ` in ${channel}`}${to === null ? '' : ` to contact ${to}`}`;
}

function heldLines({ held }: ExplainedPerson): string[] {
  return held.map(({ guard, channel, since, until }) => {
    const when = since === null ? '' : ` since ${since}`;
    if (until === null) return `guards.${guard}${when}: \`status\` names the plan to approve`;
    return (
      `opt_out in ${channel}${when}: runs about everybody apply it once it is approved, and ` +
      `from ${until} on without approval, if the CRM still states it; \`one\` and events at once`
    );
  });
}

function parkedLines({ parked }: ExplainedPerson): string[] {
  return parked.map(({ channel, reason, fix, since, attempts, retryAt }) => {
    const until = retryAt === null ? 'until the record changes, or `retry`' : `until ${retryAt}`;
    const where = channel === '' ? '' : `${channel} `;
    return `${where}since ${since}, tried ${attempts}×, ${until}: ${renderProblem({ reason, fix })}`;
  });
}

function historyLines({ history }: ExplainedPerson): string[] {
  return history.map(({ at, run, op, channel, outcome, reason, fix }) => {
    const where = channel === '' ? '' : ` in ${channel}`;
    const why = reason === null ? '' : `: ${renderProblem({ reason, fix })}`;
    return `${at} ${outcome} ${op}${where} (run ${run})${why}`;
  });
}
