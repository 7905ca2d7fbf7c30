/** Why a person is subscribed to a channel or not: one row for each reason, in their order. */
import { describe, expect, test } from 'vitest';
import { answersOf, type Evidence } from '../../../src/views/person/person-answers.ts';

const noon = '2026-03-01T12:00:00Z';
const one = '2026-03-01T13:00:00Z';
const two = '2026-03-01T14:00:00Z';
const later = '2026-03-04T09:00:00Z';
const asOf = '2026-03-05T00:00:00Z';

type Entry = Evidence['entries'][number];
type Listed = Evidence['listed'][number];
type Recorded = NonNullable<Evidence['recorded']>;
type Member = Recorded['channels'][string];

function write(at: string, rest: Partial<Entry> = {}): Entry {
  const told = { op: 'opt_in', part: 'news', outcome: 'acked', after: 'opt_in' };
  return { seq: 3, at, type: 'write', person: 'mark', ...told, ...rest };
}

function listed(cause: Listed['cause'], rest: Partial<Listed> = {}): Listed {
  return { channel: 'news', cause, through: 'address', after: null, until: one, ...rest };
}

function member(rest: Partial<Member> = {}): Member {
  return {
    is: 'opt_out',
    by: 'platform',
    after: null,
    until: null,
    doubtful: false,
    cause: null,
    acknowledgedAt: null,
    statedBy: [],
    boundTo: [],
    released: false,
    resolved: null,
    ...rest,
  };
}

function recorded(news: Partial<Member> | undefined, rest: Partial<Recorded> = {}): Recorded {
  return {
    ownership: 'created',
    id: 'con_1',
    crmIds: ['1'],
    seenAt: later,
    settled: true,
    readAgain: false,
    reset: false,
    channels: news ? { news: member(news) } : {},
    allMail: null,
    defaults: [],
    earlyConsents: [],
    protected: false,
    allowed: false,
    outgrown: [],
    contacts: [],
    renamed: [],
    ...rest,
  };
}

function shows(state: string | undefined, left = false): Evidence['contacts'] {
  const channels: Record<string, string> = state === undefined ? {} : { news: state };
  return [{ left, status: left ? 'blocked' : 'subscribed', channels }];
}

const nothing: Evidence = {
  channels: ['news'],
  entries: [],
  listed: [],
  asOf: null,
  recorded: null,
  contacts: null,
  wants: null,
  hasInvalid: false,
  statedOut: [],
  problems: [],
  movedTo: [],
  decisions: [],
};
const isIn = { is: 'opt_in', by: null } as const;
const before = [write(noon)];
const outThen = write(noon, { op: 'opt_out', after: 'opt_out', says: 'opt_out' });
const deleted = write(later, { op: 'delete', part: '', after: 'none' });
const conflict = (cause: Evidence['problems'][number]['cause']) => [{ part: 'news', cause }];

const rows: [reason: string, what: string, facts: Partial<Evidence>, sentence: string][] = [
  [
    'list-contradicts',
    'the platform shows a subscription that the list contradicts',
    { recorded: recorded(isIn), contacts: shows('opt_in'), listed: [listed('opt_out')] },
    'not certain, because the platform says subscribed, and the do-not-contact list names the ' +
      `person (opt_out, by ${one}).`,
  ],
  [
    'unmanaged',
    'a contact of others of a person whom the CRM marks as deleted',
    { problems: conflict('deleted-subscribed') },
    'subscribed, because the CRM marks the person as deleted, and the contact is not managed by ' +
      'this mirror.',
  ],
  [
    'not-on-platform',
    'a contact that this mirror deleted',
    { recorded: recorded(isIn, { id: null }), entries: [deleted] },
    'not subscribed, because this mirror deleted the contact on 4 Mar 2026.',
  ],
  [
    'not-on-platform',
    'a contact that vanished, which the CRM wants',
    {
      recorded: recorded(isIn, { id: null, seenAt: noon }),
      listed: [listed('vanished', { channel: '*', until: later })],
      problems: conflict('vanished'),
    },
    'not subscribed, because the contact was removed from the platform between 1 Mar 2026 and ' +
      '4 Mar 2026, and not by this mirror; the CRM says yes.',
  ],
  [
    'not-on-platform',
    'the platform does not know the person',
    { contacts: [], wants: [{ news: 'opt_in' }] },
    'not subscribed, because nothing is recorded of the person; the CRM says yes.',
  ],
  ...(
    [
      ['waiting', 'awaits approval'],
      ['approved', 'is approved for the next run'],
      ['rejected', 'was rejected by an operator'],
    ] as const
  ).map(([is, words]): [string, string, Partial<Evidence>, string] => [
    'not-recorded',
    `an opt-in that ${words}`,
    { decisions: [{ op: 'create', channel: 'news', is }] },
    `not subscribed, because nothing is recorded of the person; the CRM says yes, and the opt-in ${words}.`,
  ]),
  ['not-recorded', 'no record', {}, 'not subscribed, because nothing is recorded of the person.'],
  [
    'left-all-mail',
    'the person left all mail, and when',
    {
      recorded: recorded(isIn, {
        allMail: { causes: ['unsubscribed'], after: noon, until: later },
      }),
      problems: conflict('left-all-mail'),
    },
    'not subscribed, because the person left all mail on the platform between 1 Mar 2026 and ' +
      '4 Mar 2026 (unsubscribed); the CRM says yes.',
  ],
  [
    'left-all-mail',
    'the platform shows that it sends none',
    { recorded: recorded(isIn), contacts: shows('opt_in', true) },
    'not subscribed, because the person left all mail on the platform (blocked).',
  ],
  [
    'opted-in-by-us',
    'the last write made it',
    { recorded: recorded(isIn), entries: before },
    'subscribed, because the CRM said so: opted in by this mirror on 1 Mar 2026.',
  ],
  [
    'opted-in-by-us',
    'whom the CRM does not want any more',
    {
      contacts: shows('opt_in'),
      recorded: recorded(isIn),
      entries: before,
      wants: [{ news: 'opt_out' }],
    },
    'subscribed, because the CRM said so: opted in by this mirror on 1 Mar 2026; the CRM says no.',
  ],
  [
    'opted-in-since',
    'the platform shows an opt-in where an opt-out is recorded',
    { recorded: recorded({}), contacts: shows('opt_in'), entries: [outThen] },
    'subscribed, because the platform shows it now, and this mirror did not do it.',
  ],
  [
    'opted-in-elsewhere',
    'a contact that is not recorded',
    { contacts: shows('opt_in') },
    'subscribed, because the platform shows it, with a contact that this mirror does not manage.',
  ],
  [
    'opted-in-before',
    'recorded, and no write made it',
    { recorded: recorded(isIn) },
    'subscribed, because it was so when this mirror first looked.',
  ],
  ...(
    [
      ['stated', {}, 'the CRM said so (record 1): opted'],
      ['absence', {}, 'the person was missing from the CRM: opted'],
      ['flag', {}, 'the CRM marked the person as deleted: opted'],
      ['address', { movedTo: ['#9'] }, 'the CRM has another address for the person: #9: opted'],
      ['undone', {}, 'an operator took the opt-in back (`undo`): opted'],
      [null, {}, 'it was opted'],
    ] as const
  ).map(([cause, more, words]): [string, string, Partial<Evidence>, string] => {
    const statedBy = cause === 'stated' ? ['1'] : [];
    const out = { by: 'us', cause, statedBy, acknowledgedAt: noon } as const;
    return [
      'opted-out-by-us',
      `cause ${cause}`,
      { recorded: recorded(out), ...more },
      `not subscribed, because ${words} out by this mirror on 1 Mar 2026.`,
    ];
  }),
  [
    'opted-out-since',
    'the platform shows an opt-out that no run has seen',
    { recorded: recorded(isIn), contacts: shows('opt_out'), wants: [{ news: 'opt_in' }] },
    'not subscribed, because the person, or another program, opted out on the platform after ' +
      '4 Mar 2026; the CRM says yes.',
  ],
  [
    'opted-out-by-nobody',
    'a doubtful opt-out',
    { recorded: recorded({ doubtful: true }) },
    'not subscribed, because the platform shows an opt-out that nobody is known to have made.',
  ],
  [
    'opted-out-by-nobody',
    'what the creation left',
    { recorded: recorded({}, { defaults: ['news'] }) },
    'not subscribed, because the platform shows an opt-out that nobody is known to have made.',
  ],
  [
    'left-channel',
    'on one day',
    { recorded: recorded({ after: noon, until: one }), problems: conflict('left-channel') },
    'not subscribed, because the person unsubscribed on the platform on 1 Mar 2026; the CRM says yes.',
  ],
  [
    'left-channel',
    'by a day',
    { recorded: recorded({ until: one }) },
    'not subscribed, because the person unsubscribed on the platform by 1 Mar 2026.',
  ],
  [
    'never-seen',
    'no record of the channel',
    { recorded: recorded(undefined) },
    'not subscribed, because no subscription was ever seen.',
  ],
  [
    'not-recorded',
    'an invalid record',
    { wants: [{ news: null }], hasInvalid: true },
    'not subscribed, because a record in the CRM is invalid; nothing is recorded of the person.',
  ],
  [
    'not-recorded',
    'the CRM was not asked now, and has said no',
    { statedOut: ['news'] },
    'not subscribed, because the CRM has said no; nothing is recorded of the person.',
  ],
  ...(
    [
      ['never-seen', { recorded: recorded(undefined) }, 'no subscription was ever seen'],
      ['not-recorded', {}, 'nothing is recorded of the person'],
      ['not-on-platform', { contacts: [] }, 'nothing is recorded of the person'],
      [
        'opted-out-by-nobody',
        { recorded: recorded({ doubtful: true }) },
        'the platform shows an opt-out that nobody is known to have made',
      ],
    ] as const
  ).flatMap(([reason, facts, words]) =>
    (
      [
        ['opt_out', 'the CRM says no'],
        [null, 'the CRM states no opinion'],
      ] as const
    ).map(([news, lead]): [string, string, Partial<Evidence>, string] => [
      reason,
      lead,
      { ...facts, wants: [{ news }] },
      `not subscribed, because ${lead}; ${words}.`,
    ]),
  ),
];

describe('the state now', () => {
  test.each(rows)('%s: %s', (reason, _, facts, sentence) => {
    const [answer] = answersOf({ ...nothing, ...facts });
    expect(answer).toMatchObject({ reason, sentence });
    const isKnown = answer?.state !== null;
    const isIn = answer?.state === 'opt_in';
    expect(answer?.sentence.startsWith('subscribed')).toBe(isKnown && isIn);
  });
});

const out = [listed('opt_out')];
const seen = 'not subscribed at ';
const past: [string, Entry[], Listed[], string | null, string][] = [
  ['nothing on the list', before, [], 'opt_in', 'subscribed at'],
  ['nothing at all', [], [], null, 'not known at'],
  ['an opt-out after the write', before, out, 'opt_out', seen],
  ['an opt-out of all mail', before, [listed('unsubscribed', { channel: '*' })], 'opt_out', seen],
  ['an opt-out of another channel', before, [listed('opt_out', { channel: 'b' })], 'opt_in', 'sub'],
  ['a settlement', before, [listed('operator')], 'opt_out', 'an operator decided so by 1 Mar 2026'],
  ['an opt-out and no write', [], out, 'opt_out', seen],
  ['an opt-out before a later opt-in', [write(two)], out, 'opt_in', 'subscribed at'],
  ['an opt-out before an unanswered one', [write(two, { outcome: 'unknown' })], out, null, 'not c'],
  ['an opt-out in the same second', [write(one)], out, 'opt_out', seen],
  [
    'an opt-out of all before an opt-in',
    [write(two)],
    [listed('blocked', { channel: '*' })],
    null,
    'not c',
  ],
  ['a doubtful opt-out', before, [listed('doubtful')], null, 'not certain at'],
  ['an opt-out of another address', before, [listed('opt_out', { through: 'id' })], null, 'not c'],
  [
    'an opt-out, and a write that opted out',
    [outThen],
    out,
    'opt_out',
    'the CRM said so: opted out',
  ],
];

describe('the state at a past time', () => {
  test.each(past)('%s', (_, entries, list, state, words) => {
    const [answer] = answersOf({ ...nothing, entries, listed: list, asOf });
    expect(answer?.state).toBe(state);
    expect(answer?.sentence).toContain(words);
    expect(answer?.sentence).toContain(` at ${asOf}`);
    for (const { cause } of list.filter(({ channel, until }) => channel !== 'b' && until !== two)) {
      if (answer?.state === 'opt_in') continue;
      expect(answer?.evidence.join(' ')).toContain(`On the do-not-contact list: ${cause}`);
    }
  });
});
