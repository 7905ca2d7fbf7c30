/**
 * Makes sections of what is known of one person: why they are subscribed or not, what is next, what
 * each place has, and what happened. Rules that were tried are folded.
 */
import {
  timeWords,
  approvalWords,
  changeName,
  outcomeName,
} from '../../compose/output/format-values.ts';
import { renderProblem } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { isDecisiveOption } from '../../domain/unknown-words.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import { canaryWords, waitWords } from '../../engine/report/guard-text.ts';
import { cell } from '../../compose/output/text-style.ts';
import { entryParts } from '../audit/entry-document.ts';
import { absenceWords } from '../lookup/missing-people.ts';
import { heldLines } from '../lookup/standing-problems.ts';
import { type Happening, type Item, present, type Section, type Text } from '../sections.ts';
import type { PersonDocument } from './person-document.ts';
import { outlookFor } from './person-outlook.ts';
import { memberWords, ownershipNames } from './recorded-rows.ts';

type Snapshot = NonNullable<PersonDocument['snapshot']>;
type Channel = NonNullable<PersonDocument['channels']>[number];

export interface Extent {
  happenings?: number;
  characters?: number;
}

/** Returns all sections, the answers first. */
export function personSections(document: PersonDocument, extent: Extent = {}): Section[] {
  const { answers, asOf, erased, known, channels, crm, missing, audit } = document;
  const faults = audit?.faults.map(({ seq, what }) => `entry ${seq}: ${what}`) ?? [];
  const isUnasked = asOf === null && crm.why === notAsked && answers.length > 0;
  const again = known && erased !== null ? [`erased on request by ${erased}, and known since`] : [];
  const unasked =
    'as far as this mirror knows: neither the CRM nor the platform has been asked for it';
  const isUndecided = !channels && crm.why !== notAsked;
  const next = isUndecided
    ? ['nothing is decided, because the CRM could not be read']
    : [
        ...answers.map(({ channel }): Item => {
          const decided = channels?.find((one) => one.channel === channel);
          if (decided) return decisionItem(document, decided);
          // As far as the snapshot tells, because the CRM was not read.
          const { next, is, why } = outlookFor(document, channel);
          return { id: channel, text: [{ channel }, ': ', { tone: is, text: next }], notes: why };
        }),
        ...sendLines(document),
      ];
  return [
    {
      id: 'answers',
      title: 'Which mail, and why',
      lines: [
        ...again,
        ...answers.map(({ channel, sentence }): Text => [{ channel }, `: ${sentence}`]),
        ...(isUnasked ? [{ tone: 'quiet', text: unasked } as const] : []),
      ],
      isList: true,
    },
    {
      title: 'The audit log was changed',
      lines: audit?.altered ? [{ tone: 'bad', text: audit.altered }, ...faults] : [],
      isList: true,
    },
    {
      title: 'What could not be read',
      lines: missing.map(({ part, ...problem }) => [
        { tone: 'bad', text: part },
        `: ${renderProblem(problem)}`,
      ]),
      isList: true,
    },
    { title: 'What a run would do', lines: asOf === null ? next : [], isList: true },
    ...placeSections(document),
    ...pastSections(document, extent),
  ];
}

const notAsked = 'not asked';

/** Names the person, or says where nobody knows them. */
export function headOf({
  mirror,
  person,
  asOf,
  known,
  erased,
  crm,
  platform,
}: PersonDocument): string {
  const who = `${person} in ${mirror}${asOf === null ? '' : `, as of ${asOf}`}`;
  if (known) return who;
  const places = present(
    crm.read && 'the CRM',
    'the snapshot and the do-not-contact list',
    platform.read && 'the platform',
  );
  if (erased !== null) {
    const list = `the do-not-contact list holds a keyed hash of the address since ${erased}`;
    return `${who}: erased on request. Nothing is known but that: ${list}.`;
  }
  const others = crm.read && platform.read ? '' : ' Not every place was asked.';
  return `${who}: unknown to ${places.join(', ')}.${others}`;
}

function placeSections(document: PersonDocument): Section[] {
  const { crm, platform, snapshot, ledger, held, canaries = [], parked, asOf } = document;
  const { closed = [], problems, reports, decisions } = document;
  // A refusal is shown with its tries.
  const isParked = (part: string) => parked.some(({ channel }) => channel === part);
  const others = problems.filter((one) => one.class !== 'rejected' || !isParked(one.part));
  const isOpen = ({ guard }: (typeof held)[number]) =>
    decisions.some((one) => one.guard === guard && one.is === 'waiting');
  const lists: [string, readonly Text[]][] = [
    ['CRM', crm.why === notAsked ? [] : crmLines(document)],
    ['Recorded', asOf === null ? recordedLines(snapshot) : []],
    ['Platform', platform.why === notAsked ? [] : platformLines(document)],
    [
      'Do-not-contact list',
      ledger.map(({ channel, cause, through, ...when }): Text => {
        const where: Text = channel === '*' ? ['all mail'] : [{ channel }];
        const how = through === 'id' ? ', by the CRM id' : '';
        return [...where, `: ${listWords[cause] ?? cause}, ${timeWords(when)}${how}`];
      }),
    ],
    ['Awaiting approval', heldLines(held.filter(isOpen))],
    ['Decided by an operator', heldLines(held.filter((one) => !isOpen(one)))],
    [
      'Windows',
      closed.map(({ class: of, opens }) => waitWords(of, 1, opens ?? 'longer than two weeks')),
    ],
    [
      'Canary',
      canaries.map((one) => {
        const who = one.member ? 'in the slice' : 'not in the slice';
        const wait = one.waits ? ', so the change waits' : '';
        return `${canaryWords(one)}; this person is ${who}${wait}`;
      }),
    ],
    [
      'Problems',
      others.map(({ class: of, part, place, reason, fix, since }) => {
        const where = [part, place ?? ''].filter((word) => word !== '').join(', ');
        return `${of}${where === '' ? '' : ` (${where})`} since ${since}: ${renderProblem({ reason, fix })}`;
      }),
    ],
    [
      'Refused, and skipped until it changes',
      parked.map(({ channel, to, reason, fix, since, attempts, retryAt }) => {
        const until =
          retryAt === null ? 'until the record changes, or `retry`' : `until ${retryAt}`;
        const where = [channel, to === null ? '' : `contact ${to}`].filter((word) => word !== '');
        const about = where.length === 0 ? '' : `${where.join(', ')}: `;
        return `${about}since ${since}, tried ${attempts}×, ${until}: ${renderProblem({ reason, fix })}`;
      }),
    ],
    [
      'Reported to the CRM',
      reports.map(({ channel, crmId, cause, state, since }) => {
        const where = channel === '*' ? 'all mail' : channel;
        const is = reportWords[state];
        return `${listWords[cause] ?? cause} of ${where}, CRM id ${crmId}: ${is}, since ${since}`;
      }),
    ],
  ];
  return lists.map(([title, lines]) => ({ title, lines, isList: true }));
}

/** Causes on the do-not-contact list whose names are no words. */
const listWords: Readonly<Record<string, string>> = {
  opt_out: 'opt-out',
  doubtful: 'doubtful opt-out',
  vanished: 'disappeared from the platform',
  operator: 'opt-out by an operator',
  unsubscribed: 'left all mail',
  complaint: 'complained about mail',
  erasure: 'erased on request',
};

const presenceWords = { flagged: 'deleted there', outside: 'out of scope' };

function crmLines({ crm }: PersonDocument): string[] {
  if (!crm.read) return [`could not be read, so nothing is decided: ${crm.why}`];
  const lines = crm.records.map((record) => {
    const { place, id, presence, wants, consentAt, consentEarly, invalid } = record;
    const wishes = Object.entries(wants).flatMap(([channel, wish]) => {
      if (wish === null) return invalid ? [] : [`${channel} no opinion`];
      return [`${channel} ${stateWords(wish)}`];
    });
    const about = present(
      presence !== 'present' && presenceWords[presence],
      wishes.length > 0 && wishes.join(', '),
      consentAt && `stated ${consentAt}`,
      consentEarly && 'that was in the future when it was first read, so it never counts',
      invalid && `INVALID: ${renderProblem(invalid)}`,
    );
    return `${place}${id === '' ? '' : `, id ${id}`}: ${about.join('; ')}`;
  });
  for (const { place, ...why } of crm.mentions) {
    lines.push(`${place} names this person, and cannot be read: ${renderProblem(why)}`);
  }
  if (lines.length === 0) lines.push('does not name this person');
  if (!crm.certified) lines.push(`not read completely, so only opt-outs are applied: ${crm.why}`);
  return lines;
}

function recordedLines(snapshot: Snapshot | null): Text[] {
  if (!snapshot) return ['nothing is recorded: not ours'];
  const { ownership, id, crmIds, seenAt, settled, reset, readAgain, allMail, left } = snapshot;
  const { former, moved, absence, renamed, channels, defaults } = snapshot;
  const whose =
    ownership === 'noted' ? 'not ours: only what must be remembered' : ownershipNames[ownership];
  const where = id === null ? 'vanished from the platform' : `contact ${id}`;
  const ids = crmIds.length === 0 ? [] : [`CRM id ${crmIds.join(', ')}`];
  const since = left?.until ? `, ${timeWords({ ...left, until: left.until })}` : '';
  const does = moved?.does === 'delete' ? 'a run deletes' : 'a run opts out';
  const known = present(
    reset && 'to be read again: the next run reads it on the platform',
    readAgain && !reset && 'the next full run compares it with the platform',
    !settled && !reset && 'the next run that reads it decides anew',
    allMail && `opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})${since}`,
    snapshot.protected && 'protected by contacts.protect',
    snapshot.allowed && 'its erasure was taken back, and the platform not read since',
    renamed.length > 0 && `under another address: ${renamed.join(', ')}`,
    former.length > 0 && `known before as ${former.join(', ')}`,
    moved &&
      `in the CRM as ${moved.to.join(', ')} by now: ${does} this contact once that is in place: ` +
        'subscribed or barred wherever the CRM wants it',
    absence && absenceWords(absence),
  );
  return [
    [whose, where, ...ids, `last seen ${seenAt ?? 'never'}`].join(', '),
    ...Object.entries(channels).map(([channel, is]): Text => {
      const { cause, acknowledgedAt, statedBy, released, resolved } = is;
      const before = cause === 'undone' ? 'before that ' : '';
      const words = present(
        memberWords(is),
        cause && (causeWords[cause] ?? cause),
        acknowledgedAt && `acknowledged ${acknowledgedAt}`,
        statedBy.length > 0 && `${before}stated by CRM id ${statedBy.join(', ')}`,
        released && 'released by `allow`',
        defaults.includes(channel) && 'set by the creation, by nobody',
        resolved && `resolved as an opt-in by ${resolved.by}: ${resolved.reason}`,
      );
      return [{ channel }, `: ${words.join(', ')}`];
    }),
    ...known,
  ];
}

const causeWords: Readonly<Record<string, string>> = {
  stated: 'the CRM states it',
  absence: 'missing from the CRM',
  flag: 'deleted in the CRM',
  address: 'the CRM has another address',
  undone: '`undo` took our opt-in back',
};

const stopWords = {
  protect: 'contacts.protect names this person',
  optIns: 'policy.optIns is off',
  sample: 'contacts.sample chooses others',
} as const;

function platformLines({ platform }: PersonDocument): string[] {
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
    const more = present(
      name !== '' && `name ${JSON.stringify(name)}`,
      Object.keys(properties).length > 0 && `properties ${JSON.stringify(properties)}`,
      groups.length > 0 && `groups ${cell(groups.join(', '))}`,
    );
    return present(
      `contact ${id}: ${states.join(', ')}${changed}`,
      more.length > 0 && `not synced: ${more.join('; ')}`,
    );
  });
}

function decisionItem({ crm, platform, snapshot }: PersonDocument, channel: Channel): Item {
  const { decision, tried, gates: asked, by, problem, stoppedBy, desired, observed } = channel;
  const rule = [...tried, ...asked].find(({ id }) => id === by);
  const wish = desiredWords(desired, crm);
  const named = rule ? `${rule.asks} (${by})` : 'no rule matches';
  const asks = by === 'no-opinion' ? wish : named;
  const why = stoppedBy === null ? asks : `${stopWords[stoppedBy]} (${by})`;
  const also = problem ? `; ${renderProblem(problem)}` : '';
  const left = observed === 'opt_in' && platform.contacts.find((one) => one.left);
  const but = left && `, but ${left.status ?? 'unsubscribed from all mail'}`;
  const state = but ? `opt in for the channel${but}` : stateWords(observed);
  const whose = channel.ours ? '' : ', by a contact that is not ours';
  const { settlement, recorded } = channel;
  const was = recorded ? memberWords(recorded) : '–';
  return {
    id: channel.channel,
    text: [
      { channel: channel.channel },
      ': ',
      { strong: doneWords[decision] ?? decision },
      `: ${why}${also}`,
    ],
    notes: present(
      ...columnLines(channel.channel, crm.records),
      `${wish}; recorded ${was}; the platform shows ${state}${whose}`,
      // A look at one person proves no absence.
      by === 'gone-kept' &&
        snapshot?.absence?.due &&
        'a full run counts the person as missing, and decides by policy.absent',
      settlement &&
        `resolved as an opt-${settlement.as} by ${settlement.by}, ${settlement.at}: ` +
          `${settlement.reason} (evidence: ${settlement.evidence})`,
    ),
  };
}

function sendLines({ sends, keptBack, history, decisions }: PersonDocument): Text[] {
  const changeWords = ({ op, channel, to }: NonNullable<typeof sends>[number]): string =>
    `${op.replace('_', ' ')}${channel === '' ? '' : ` in ${channel}`}${to === null ? '' : `, contact ${to}`}`;
  const open = history.filter(({ outcome }) => outcome === 'sent' || outcome === 'unknown').length;
  const until = 'is not known yet: until it is, only opt-outs are sent';
  return [
    ...(sends ?? []).map((change) => {
      const held = decisions.find(
        ({ op, channel }) => op === change.op && channel === change.channel,
      );
      return `${sendWords[held?.is ?? 'approved']}: ${changeWords(change)}`;
    }),
    ...(keptBack ?? []).map(
      (change) => `to send: kept back: ${changeWords(change)}: ${change.asks}`,
    ),
    ...(sends && open > 0 ? [`to send: the outcome of ${open} sent before ${until}`] : []),
  ];
}

const sendWords = {
  waiting: 'awaits approval, not sent until then',
  approved: 'to send',
  rejected: 'rejected, not sent',
};

const meaningWords: Readonly<Record<string, string>> = {
  none: 'no opinion',
  empty: 'no opinion',
  unknown: 'no known meaning',
};

/** Names the columns of the CRM, with values, that decide about a channel or about all mail. */
function columnLines(channel: string, records: PersonDocument['crm']['records']): string[] {
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
        return `${setting}: ${columnWord} ${names} ${held}: ${meaningWords[means] ?? means} (${place})`;
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
  { records, mentions }: PersonDocument['crm'],
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

function pastSections(document: PersonDocument, extent: Extent = {}): Section[] {
  const { answers, channels, snapshot, platform } = document;
  const { body, ...stored } = snapshot?.raw ?? {};
  return [
    {
      title: 'What the answers rest on',
      lines: answers.map(({ channel, evidence }) => ({ text: { channel }, notes: evidence })),
      isList: true,
      isFolded: true,
    },
    ...(channels ?? []).map(triedRules),
    ...happenedSections(document, extent),
    {
      title: 'As it is stored',
      facts: [
        ...Object.entries(stored).map(([name, value]) => [name, String(value)] as const),
        ...(body === undefined ? [] : [['body', JSON.stringify(body)] as const]),
      ],
      isFolded: true,
    },
    ...('raw' in platform ? platform.raw : []).map((contact) => ({
      title: 'As the platform returns it',
      facts: Object.entries(contact).map(
        ([name, value]) =>
          [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
      ),
      isFolded: true,
    })),
  ];
}

function triedRules({ channel, tried, gates: asked, by }: Channel): Section {
  const rows = [
    ...tried.map(({ id, asks, matches }) => ({ id, asks, says: matches })),
    ...asked.map(({ id, asks, held }) => ({ id, asks: `gate: ${asks}`, says: held })),
  ];
  const cells = rows.map(({ id, asks, says }) => [
    `${says ? 'yes' : 'no'}${id === by ? ': this decided' : ''}`,
    id,
    asks,
  ]);
  if (!rows.some(({ id }) => id === by)) cells.push(['', '', 'no rule matches']);
  const table = { columns: ['Now', 'Rule', 'It matches if'], rows: cells };
  return { title: ['Rules tried for ', { channel }], table, isFolded: true };
}

/** Returns one line of time. In one second, what came of a request follows the request. */
function happenedSections(document: PersonDocument, extent: Extent): Section[] {
  const { happenings = Infinity, characters = Infinity } = extent;
  const { audit, history, requests } = document;
  const entries = audit?.entries ?? [];
  const firsts = new Map(entries.toReversed().map(({ run, seq }) => [run?.id, seq]));
  // The audit log has no write of some changes, such as of one that was never sent.
  const changes = new Set(history);
  const ofEntries = entries.map((entry): Moment => {
    const { at, seq, run, op, part, outcome } = entry;
    const same = [...changes].filter(
      (one) => one.run === run?.id && one.op === op && one.channel === part,
    );
    const change = same.find((one) => one.outcome === outcome) ?? same[0];
    if (change) changes.delete(change);
    const { title, facts } = entryParts(entry);
    const happening = {
      at,
      title: [title, runSpan(run?.id), change ? reasonWords(change) : ''].flat(),
      facts: [
        ...facts.map(([name, value]): readonly [string, Text] => [
          name,
          name === 'rule' ? { strong: value } : value,
        ]),
        ['audit log', `entry ${seq}`] as const,
      ],
    };
    return [seq, happening];
  });
  const all = [
    ...ofEntries,
    ...[...changes].map((one): Moment => [firsts.get(one.run) ?? Infinity, ofChange(one)]),
    ...requests.map((one): Moment => {
      return [(firsts.get(one.run ?? '') ?? 0) - 0.5, ofRequest(one, characters)];
    }),
    ...seenOf(document).map((one): Moment => [Infinity, one]),
    ...decidedAbout(document).map((one): Moment => [0, one]),
  ].toSorted(([m, a], [n, b]) => b.at.localeCompare(a.at) || (m === n ? 0 : n - m));
  const more = all.length - happenings;
  return [
    {
      title: 'What happened, the newest first',
      happened: all.slice(0, happenings).map(([, one]) => one),
      none: 'Nothing is kept about this person.',
    },
    {
      lines:
        more > 0
          ? [`… and ${withCommas(more)} before: a file (\`explain --output\`) has all of it.`]
          : [],
    },
  ];
}

/** Something that happened, with its place in its second. */
type Moment = [nth: number, Happening];

/** Returns what runs saw of the person and reported to the CRM; of one second, the last first. */
function seenOf(document: PersonDocument): Happening[] {
  const { snapshot, ledger, problems, held, reports } = document;
  const onPlatform = ofPlatform(document);
  const told = new Set(onPlatform.map(({ at }) => at));
  const happened = (at: string, title: Text, ...facts: Happening['facts']): Happening => {
    return { at, title, facts };
  };
  const of = (channel: string | null) =>
    channel === null
      ? []
      : [['for', channel === '*' || channel === '' ? 'all mail' : { channel }] as const];
  const { absence = null, seenAt = null } = snapshot ?? {};
  return [
    ...reports.map(({ channel, crmId, cause, state, since, endedAt }) => {
      const title = `${listWords[cause] ?? cause}: ${reportWords[state]}`;
      return happened(endedAt ?? since, title, ...of(channel), ['CRM id', crmId]);
    }),
    ...held.map(({ since, guard, channel }) => {
      const limit = `\`guards.${guard}\``;
      return happened(since, 'a change began to await approval', ['limit', limit], ...of(channel));
    }),
    ...problems.map(({ class: is, since, reason, fix }) => {
      const link = { page: 'problems', text: 'Problems' };
      return happened(since, `${is}: ${reason}`, ['remedy', fix], ['see', link]);
    }),
    ...ledger.flatMap(({ channel, cause, until, ...when }) => {
      if (until === null || told.has(until)) return [];
      const title = `put on the do-not-contact list: ${listWords[cause] ?? cause}`;
      return happened(until, title, ...of(channel), ['when', timeWords({ ...when, until })]);
    }),
    ...present(
      absence && happened(absence.first, 'missing from the CRM', ['since', absenceWords(absence)]),
      seenAt !== null && happened(seenAt, 'last seen on the platform'),
    ),
    ...onPlatform,
  ];
}

const reportWords = {
  needless: 'the CRM says so itself',
  planned: 'to be reported to the CRM',
  sent: 'sent to the CRM, without an answer yet',
  acked: 'reported to the CRM',
  rejected: 'the CRM refused the report',
  unknown: 'perhaps reported to the CRM',
};

/** Returns the decisions about plans in which changes of the person are. */
function decidedAbout({ audit, held }: PersonDocument): Happening[] {
  const approved = (audit?.entries ?? []).flatMap(({ approvedBy = [], approval: plan }) =>
    approvedBy.map(({ name: by, ...one }) => ({ is: 'approved', plan: String(plan), by, ...one })),
  );
  const open = held.flatMap(({ decisions }) => decisions);
  const all = new Map([...open, ...approved].map((one) => [`${one.plan} ${one.at}`, one]));
  return [...all.values()].map(({ is, at, plan, by, reason }) => ({
    at,
    title: `${by} ${is} changes, this person's among them${reason === null ? '' : `: ${reason}`}`,
    facts: [['plan', { page: `audit?plan=${plan}`, text: plan }]],
  }));
}

function runSpan(run: string | null | undefined): Text {
  return run ? [' (', { page: `runs/${run}`, text: `run ${run}` }, ')'] : [];
}

type Change = PersonDocument['history'][number];

function ofChange(change: Change): Happening {
  const { at, run, op, channel, outcome, reason } = change;
  // The result of a creation decides about the other changes of the person.
  const became = reason === plannedAgain ? plannedAgain : outcomeName(outcome);
  const where = channel === '' ? '' : ` ${channel}`;
  return {
    at,
    title: [
      `${changeName(op, false)}${where} – ${became}`,
      runSpan(run),
      reasonWords(change),
    ].flat(),
    facts: [],
  };
}

function reasonWords({ reason, fix, approval }: Change): string {
  const why =
    reason === null || reason === plannedAgain ? '' : `: ${renderProblem({ reason, fix })}`;
  return `${approvalWords(approval)}${why}`;
}

/** Returns the opt-outs of the person, or another program, also those that `undo` restored. */
function ofPlatform({ snapshot, history }: PersonDocument): Happening[] {
  if (!snapshot) return [];
  const made = Object.entries(snapshot.channels)
    .filter(([, { is, by }]) => is === 'opt_out' && by === 'platform')
    .map(([channel, of]) => ({ ...of, channel, what: `opted out of ${channel}` }));
  const written = history.filter(({ op, outcome }) => op === 'opt_out' && outcome === 'acked');
  const left = snapshot.allMail;
  const all = left ? [{ ...left, channel: '', what: 'left all mail' }] : [];
  return [...made, ...all].flatMap(({ what, channel: part, after, until }): Happening[] => {
    if (until === null) return [];
    const isRestored = written.some(
      ({ channel, at }) => channel === part && at >= (after ?? '') && at <= until,
    );
    const does = isRestored ? '`undo` restored it' : 'no write of this mirror did it';
    const by = `the person, or another program: ${does}`;
    return [
      {
        at: until,
        title: `${what} on the platform`,
        facts: [['by', by] as const, ['when', timeWords({ after, until })] as const],
      },
    ];
  });
}

function ofRequest(one: PersonDocument['requests'][number], characters: number): Happening {
  const { at, run, route, method, path, status, failure, ms, attempt, requestId } = one;
  const id = requestId === null ? '' : `, request id ${requestId}`;
  const asked = `asked the platform: ${route}, answered ${status ?? failure ?? 'nothing'}`;
  const texts = [['Sent', one.request] as const, ['Answered', one.answer] as const];
  return {
    at,
    title: [asked, runSpan(run)].flat(),
    facts: [['request', `\`${method} ${path}\` (try ${attempt}, ${withCommas(ms)} ms${id})`]],
    texts: texts.flatMap(([name, text]) =>
      text === null ? [] : [[name, text.slice(0, characters)] as const],
    ),
  };
}
