/** Formats everything known about one person as lines for people. */
import { approvalWords } from '../../compose/output/decision-words.ts';
import { renderProblem } from '../../domain/errors.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import type { ExplainedPerson } from './person-document.ts';
import { canaryWords } from '../../engine/report/canary-text.ts';
import { isDecisiveOption } from '../../domain/values/decisive-options.ts';
import { heldLines } from './standing-problems.ts';
import { absenceWords } from './missing-people.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { sectionLines } from '../render/text.ts';
import type { Section } from '../sections.ts';
import { cell } from '../../compose/output/visible-text.ts';

type Channel = NonNullable<ExplainedPerson['channels']>[number];

/** Renders the answer first: what a run would do, and why. `isVerbose`: with every rule tried. */
export function explainedLines(document: ExplainedPerson, isVerbose: boolean): Line[] {
  const sections = explainedSections(document);
  return [styled('bold', headOf(document)), '', ...sectionLines(sections, { isAll: isVerbose })];
}

/** Returns the sections; the rules that were tried are folded. */
export function explainedSections(document: ExplainedPerson): Section[] {
  const { ledger, held, canaries = [], parked, channels } = document;
  const sections: [string, readonly string[], isFolded?: true][] = [
    ['What a run would do', answerLines(document)],
    ['CRM', crmLines(document)],
    ['Snapshot', snapshotLines(document)],
    ['Platform', platformLines(document)],
    [
      'Do-not-contact list',
      ledger.map(({ channel, cause, through, after, until }) => {
        const where = channel === '*' ? 'all mail' : channel;
        const how = through === 'id' ? ', by the CRM id' : '';
        return `${cause} of ${where}, ${timeWords({ after, until })}${how}`;
      }),
    ],
    ['Awaiting approval', heldLines(held)],
    [
      'Canary',
      canaries.map((one) => {
        const who = one.member ? 'in the slice' : 'not in the slice';
        const wait = one.waits ? ', so the change waits' : '';
        return `${canaryWords(one)}; this person is ${who}${wait}`;
      }),
    ],
    [
      'Refused, and skipped until it changes',
      parked.map(({ channel, reason, fix, since, attempts, retryAt }) => {
        const until =
          retryAt === null ? 'until the record changes, or `retry`' : `until ${retryAt}`;
        const where = channel === '' ? '' : `${channel} `;
        return `${where}since ${since}, tried ${attempts}×, ${until}: ${renderProblem({ reason, fix })}`;
      }),
    ],
    ['What happened, the newest first', historyLines(document)],
    ...(channels ?? []).map(({ channel, tried, gates }): [string, string[], true] => {
      const line = (isMet: boolean, row: number | null, text: string) =>
        `${isMet ? 'YES' : 'no '} ${String(row ?? '').padStart(2)}  ${text}`;
      const rows = tried.map(({ id, row, asks, matches }) => line(matches, row, `${asks} (${id})`));
      if (!tried.some(({ matches }) => matches)) rows.push('no rule matches');
      const asked = gates.map(({ id, row, asks, held: isHeld }) =>
        line(isHeld, row, `gate: ${asks} (${id})`),
      );
      return [`Rules tried for ${channel}`, [...rows, ...asked], true];
    }),
  ];
  return sections.map(([title, lines, isFolded]) => ({ title, lines, isList: true, isFolded }));
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

const presenceWords = {
  present: [],
  flagged: ['deleted there'],
  outside: ['out of scope'],
};

function crmLines({ crm }: ExplainedPerson): string[] {
  if (!crm.read) return [`could not be read, so nothing is decided: ${crm.why}`];
  const lines = crm.records.map((record) => {
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
  for (const { place, ...why } of crm.mentions) {
    lines.push(`${place} names this person, and cannot be read: ${renderProblem(why)}`);
  }
  if (lines.length === 0) lines.push('does not name this person');
  if (!crm.certified) lines.push(`not read completely, so only opt-outs are applied: ${crm.why}`);
  return lines;
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
    ...(moved
      ? [
          `in the CRM as ${moved.to.join(', ')} by now: ${moved.does === 'delete' ? 'a run deletes' : 'a run opts out'} ` +
            'this contact once that is in place: subscribed or barred wherever the CRM wants it',
        ]
      : []),
  ];
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
  return platform.contacts.flatMap((contact) => {
    const { id, status, left, suppressed, channels, updatedAt, notSynced } = contact;
    const states = [
      cell(status ?? (left ? 'opted out of all mail' : 'subscribed')),
      ...(suppressed === null ? [] : [`suppressed: ${cell(suppressed)}`]),
      ...Object.entries(channels).map(([channel, is]) => `${channel} ${stateWords(is)}`),
    ];
    const changed = updatedAt === null ? '' : ` (changed ${updatedAt})`;
    const { firstName, lastName, properties = {}, groups = [] } = notSynced ?? {};
    const name = [firstName, lastName].filter(Boolean).join(' ');
    const more = [
      ...(name === '' ? [] : [`name ${JSON.stringify(name)}`]),
      ...(Object.keys(properties).length === 0 ? [] : [`properties ${JSON.stringify(properties)}`]),
      ...(groups.length === 0 ? [] : [`groups ${cell(groups.join(', '))}`]),
    ];
    return [
      `contact ${id}: ${states.join(', ')}${changed}`,
      ...(more.length === 0 ? [] : [`not synced: ${more.join('; ')}`]),
    ];
  });
}

/** Answers for each channel what would happen and why, then lists what would be sent. */
function answerLines(document: ExplainedPerson): string[] {
  const { channels, crm, platform, sends, keptBack, history } = document;
  if (!channels) return ['nothing is decided, because the CRM could not be read'];
  const lines = channels.flatMap((channel) => {
    const { decision, tried, gates, by, row, problem, stoppedBy, desired, observed } = channel;
    // The rule or gate that decided.
    const rule = [...tried, ...gates].find(({ id }) => id === by);
    const wish = desiredWords(desired, crm);
    const asks = by === 'no-opinion' ? wish : rule?.asks;
    const why = stoppedBy === null ? (asks ?? 'no rule matches') : stopWords[stoppedBy];
    const number = row === 0 ? '' : ` (rule ${row})`;
    const also = problem ? `; ${renderProblem(problem)}` : '';
    const left = observed === 'opt_in' && platform.contacts.find((one) => one.left);
    const but = left && `, but ${left.status ?? 'unsubscribed from all mail'}`;
    const state = but ? `opt in for the channel${but}` : stateWords(observed);
    const whose = channel.ours ? '' : ', by a contact that is not ours';
    const { settlement } = channel;
    return [
      `${channel.channel}: ${doneWords[decision] ?? decision}: ${why}${number}${also}`,
      ...columnLines(channel.channel, crm.records),
      `    ${wish}; recorded ${channel.recorded ? memberWords(channel.recorded) : '–'}; ` +
        `the platform shows ${state}${whose}`,
      ...(settlement
        ? [
            `    resolved as an opt-${settlement.as} by ${settlement.by}, ${settlement.at}: ` +
              `${settlement.reason} (evidence: ${settlement.evidence})`,
          ]
        : []),
    ];
  });
  const changeWords = ({ op, channel, to }: NonNullable<typeof sends>[number]): string =>
    `${op.replace('_', ' ')}${channel === '' ? '' : ` in ${channel}`}${to === null ? '' : `, contact ${to}`}`;
  for (const change of sends ?? []) lines.push(`to send: ${changeWords(change)}`);
  for (const change of keptBack ?? []) {
    lines.push(`to send: kept back: ${changeWords(change)}: ${change.asks}`);
  }
  const open = history.filter(({ outcome }) => outcome === 'sent' || outcome === 'unknown').length;
  if (sends && open > 0) {
    lines.push(
      `to send: the outcome of ${open} sent before is not known yet: until it is, only opt-outs are sent`,
    );
  }
  return lines;
}

const meaningWords: Readonly<Record<string, string>> = {
  none: 'no opinion',
  empty: 'no opinion',
  unknown: 'no known meaning',
};

/**
 * Names the columns of the CRM that decide about a channel, or state that the person is deleted or
 * unsubscribed from everything, with their values.
 */
function columnLines(channel: string, records: ExplainedPerson['crm']['records']): string[] {
  return records.flatMap(({ columns, place }) =>
    columns
      .filter((one) => {
        const isSaid = one.means !== 'no' && one.means !== 'empty';
        const isForAll = one.channel === null && isDecisiveOption(one.option) && isSaid;
        return one.channel === channel || isForAll;
      })
      .map(({ option, fields, value, date, means }) => {
        const setting = option.slice(option.lastIndexOf('.') + 1);
        const names = fields.map((field) => `"${field}"`).join(', ');
        const columnWord = fields.length === 1 ? 'column' : 'columns';
        let held = `holds ${JSON.stringify(value)}${date ? ', a date' : ''}`;
        if (value === null) held = date ? 'holds a date' : 'holds another value';
        else if (value === '') held = 'is empty';
        return `    ${setting}: ${columnWord} ${names} ${held}: ${meaningWords[means] ?? means} (${place})`;
      }),
  );
}

const doneWords: Readonly<Record<string, string>> = {
  create: 'create the contact and opt in',
  opt_in: 'opt in',
  opt_out: 'opt out',
  delete: 'delete',
  nothing: 'nothing to do',
  conflict: 'nothing is sent, a conflict',
};

const stateWords = (state: string | null) => (state === null ? 'nothing' : state.replace('_', ' '));

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
