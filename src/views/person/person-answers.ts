/**
 * Answers for each channel whether a person is subscribed, and why, in one sentence that the person
 * may read. The first row of `reasons` that holds says why; what the answer rests on follows it.
 */
import type { ProblemCause } from '../../domain/problem-causes.ts';
import {
  isUnmanagedCause,
  type UnmanagedAs,
  unmanagedCauses,
} from '../../domain/unmanaged-people.ts';
import { dayText, timeWords } from '../../compose/output/format-values.ts';
import { type EntryDocument, writeFacts } from '../audit/entry-document.ts';
import { present } from '../sections.ts';
import type { ListEntries } from './person-records.ts';
import type { RecordedPerson } from './recorded-rows.ts';

export interface Evidence {
  channels: readonly string[];
  entries: readonly EntryDocument[];
  listed: ListEntries;
  /** The time for which the answer is given; null for now. */
  asOf: string | null;
  /** The recorded state; null if nothing is recorded, or for the past. */
  recorded: RecordedPerson | null;
  /** The person's contacts on the platform; null if it was not read. */
  contacts: readonly PlatformContact[] | null;
  /** What the records of the CRM state; null if they were not read. */
  wants: readonly Readonly<Record<string, string | null>>[] | null;
  /** Whether one of them is invalid, so that only their opt-outs count. */
  hasInvalid: boolean;
  /** The channels for which a record of the CRM said no when it was read. */
  statedOut: readonly string[];
  problems: readonly { part: string; cause: ProblemCause }[];
  /** The other addresses that the CRM has for the person now. */
  movedTo: readonly string[];
  /** The changes that await approval, or that somebody has decided about. */
  decisions: readonly { op: string; channel: string; is: keyof typeof decisionWords }[];
}

interface PlatformContact {
  left: boolean;
  status: string | null;
  channels: Readonly<Record<string, string>>;
}

export interface MailAnswer {
  channel: string;
  /** opt_in, opt_out or none; null if it is not known or not certain. */
  state: string | null;
  /**
   * Where the state was read; `log` if it is derived from the last write, and `list` if an entry of
   * the do-not-contact list tells it.
   */
  from: 'platform' | 'snapshot' | 'log' | 'list';
  /** When the write that made this state was recorded; null if no write of the mirror made it. */
  since: string | null;
  /** The number of the entry of that write in the audit log. */
  entry: number | null;
  /** The row of `reasons` that holds. */
  reason: string;
  sentence: string;
  evidence: string[];
}

interface ChannelFacts {
  channel: string;
  state: string | null;
  from: MailAnswer['from'];
  evidence: Evidence;
  member: RecordedPerson['channels'][string] | undefined;
  /** The last write that changed the channel, or may have. */
  write: EntryDocument | undefined;
  cause: EntryDocument | undefined;
  /** The entries of the do-not-contact list that no later opt-in has ended. */
  standing: ListEntries;
  /** The entry among them that decides a state of the past. */
  deciding: ListEntries[number] | undefined;
  unmanaged: UnmanagedAs | undefined;
  /** The status of a contact that receives no mail at all. */
  barred: string | undefined;
}

interface Reason {
  id: string;
  holds(facts: ChannelFacts): boolean;
  why(facts: ChannelFacts): string;
  is?: Is;
  /** Whether nothing was done about the channel, so that what the CRM says comes first. */
  isIdle?: true;
}

/** What the answer says in the place of the state that was found. */
interface Is {
  state: string | null;
  head?: string;
  from?: MailAnswer['from'];
}

const reasons: readonly Reason[] = [
  {
    id: 'list-decides',
    holds: ({ deciding }) => deciding !== undefined,
    why: ({ deciding: by }) =>
      by ? `${certain[by.cause]} by ${dayOf(by.until)} (do-not-contact list)` : '',
    is: { state: 'opt_out', from: 'list' },
  },
  {
    id: 'not-on-platform',
    isIdle: true,
    holds: ({ from, evidence: { recorded, contacts } }) =>
      from === 'platform' ? contacts?.length === 0 : from === 'snapshot' && recorded?.id === null,
    why: ({ evidence }) => whereabouts(evidence),
    is: { state: 'none' },
  },
  {
    id: 'not-recorded',
    isIdle: true,
    holds: ({ state, from }) => from === 'snapshot' && state === null,
    why: ({ evidence }) => whereabouts(evidence),
    is: { state: 'none' },
  },
  {
    id: 'left-all-mail',
    holds: ({ from, barred, evidence: { recorded } }) =>
      barred !== undefined || (from === 'snapshot' && Boolean(recorded?.allMail)),
    why({ barred, evidence: { recorded } }) {
      const { causes = [], after = null, until = null } = recorded?.allMail ?? {};
      const words = causes.length > 0 ? causes.join(', ') : barred;
      const when = until === null ? '' : ` ${between({ after, until })}`;
      const how = words === undefined ? '' : ` (${words})`;
      return `the person left all mail on the platform${when}${how}`;
    },
    is: { state: 'opt_out' },
  },
  {
    id: 'list-contradicts',
    holds: ({ state, from, standing }) =>
      (state === 'opt_in' || (state === null && from === 'log')) && standing.length > 0,
    why: ({ state, from, standing }) => {
      const shown = state === null ? 'the state is not known' : places[from];
      const entries = standing.map(listWords).join('; ');
      return `${shown}, and the do-not-contact list names the person (${entries})`;
    },
    is: { state: null, head: 'not certain' },
  },
  {
    id: 'not-written',
    holds: ({ state, from }) => state === null && from === 'log',
    why: () => 'the audit log has no write to this channel before',
    is: { state: null, head: 'not known' },
  },
  {
    id: 'unmanaged',
    holds: ({ state, unmanaged }) => state === 'opt_in' && unmanaged !== undefined,
    why: ({ unmanaged }) => (unmanaged ? unmanagedWords[unmanaged] : ''),
  },
  {
    id: 'opted-in-by-us',
    holds: ({ state, cause }) => state === 'opt_in' && cause !== undefined,
    why: ({ cause }) => `the CRM said so: opted in by this mirror on ${dayOf(cause?.at)}`,
  },
  {
    id: 'opted-in-since',
    holds: ({ state, member }) => state === 'opt_in' && member !== undefined && member.is !== state,
    why: () => 'the platform shows it now, and this mirror did not do it',
  },
  {
    id: 'opted-in-elsewhere',
    holds: ({ state, evidence: { recorded, asOf } }) =>
      state === 'opt_in' && recorded === null && asOf === null,
    why: () => 'the platform shows it, with a contact that this mirror does not manage',
  },
  {
    id: 'opted-in-before',
    holds: ({ state }) => state === 'opt_in',
    why: () => 'it was so when this mirror first looked',
  },
  {
    id: 'opted-out-by-us',
    holds: ({ state, member, cause }) =>
      state === 'opt_out' && (member?.by === 'us' || (cause !== undefined && !member)),
    why({ member, cause, evidence: { movedTo } }) {
      const at = member?.acknowledgedAt ?? member?.until ?? cause?.at ?? null;
      const when = at === null ? '' : ` on ${dayOf(at)}`;
      const { statedBy = [] } = member ?? {};
      const records = statedBy.length === 1 ? 'record' : 'records';
      const who = statedBy.length === 0 ? '' : ` (${records} ${statedBy.join(', ')})`;
      const words: Readonly<Record<string, string>> = {
        stated: `the CRM said so${who}`,
        opt_out: 'the CRM said so',
        absence: 'the person was missing from the CRM',
        gone: 'the person was missing from the CRM',
        flag: 'the CRM marked the person as deleted',
        deleted: 'the CRM marked the person as deleted',
        address: `the CRM has another address${movedTo.length === 0 ? '' : ` for the person: ${movedTo.join(', ')}`}`,
        undone: 'an operator took the opt-in back (`undo`)',
      };
      const because = words[member?.cause ?? String(cause?.['says'])];
      const done = `opted out by this mirror${when}`;
      return because === undefined ? `it was ${done}` : `${because}: ${done}`;
    },
  },
  {
    id: 'opted-out-since',
    holds: ({ state, member }) => state === 'opt_out' && member?.is === 'opt_in',
    why: ({ evidence: { recorded } }) =>
      `the person, or another program, opted out on the platform after ${dayOf(recorded?.seenAt)}`,
  },
  {
    id: 'opted-out-by-nobody',
    isIdle: true,
    holds: ({ state, channel, member, evidence: { recorded } }) =>
      state === 'opt_out' &&
      (member?.doubtful || recorded?.defaults.includes(channel) || member === undefined),
    why: () => 'the platform shows an opt-out that nobody is known to have made',
  },
  {
    id: 'left-channel',
    holds: ({ state }) => state === 'opt_out',
    why: ({ member }) =>
      `the person unsubscribed on the platform${member && member.until !== null ? ` ${between(member)}` : ''}`,
  },
  {
    id: 'deleted-by-us',
    holds: ({ state, write }) => state === 'none' && write?.['op'] === 'delete',
    why: ({ write }) => `this mirror deleted the contact on ${dayOf(write?.at)}`,
  },
];

const neverSeen: Reason = {
  id: 'never-seen',
  isIdle: true,
  holds: () => true,
  why: () => 'no subscription was ever seen',
};

/** Returns the answers, in the order of the channels. */
export function answersOf(evidence: Evidence): MailAnswer[] {
  return evidence.channels.map((channel) => {
    const facts = factsAbout(channel, evidence);
    const reason = reasons.find(({ holds }) => holds(facts)) ?? neverSeen;
    const { id, is = facts, why, isIdle = false } = reason;
    const { state, head = state === 'opt_in' ? 'subscribed' : 'not subscribed' }: Is = is;
    const { from = facts.from }: Is = is;
    const cause = is === facts ? facts.cause : undefined;
    const at = evidence.asOf === null ? '' : ` at ${evidence.asOf}`;
    const isNo = state === 'opt_out' || state === 'none';
    const { wants } = evidence;
    const causes = evidence.problems.flatMap((one) => (one.part === channel ? [one.cause] : []));
    const held = evidence.decisions.find(
      (one) => one.channel === channel && (one.op === 'create' || one.op === 'opt_in'),
    );
    const isWanted = wants
      ? wants.length > 0 && wants.every((of) => of[channel] === 'opt_in')
      : held !== undefined || causes.some((one) => wantedIn.has(one));
    const isUnwanted = wants
      ? wants.some((of) => of[channel] === 'opt_out')
      : causes.includes('opt-out-refused');
    const lead = isUnwanted ? 'the CRM says no; ' : crmLead(channel, evidence);
    const because = `${isIdle ? lead : ''}${why(facts)}`;
    const wait = held ? `, and the opt-in ${decisionWords[held.is]}` : '';
    const yes = isNo && isWanted ? `; the CRM says yes${wait}` : '';
    const no = state === 'opt_in' && isUnwanted ? '; the CRM says no' : '';
    return {
      channel,
      state,
      from,
      since: cause?.at ?? null,
      entry: cause?.seq ?? null,
      reason: id,
      sentence: `${head}${at}${because === '' ? '' : `, because ${because}`}${yes}${no}.`,
      evidence: [
        ...(cause
          ? present(
              `This was done by the write in entry ${cause.seq} of the audit log, ${cause.at}.`,
              cause['outcome'] === 'found' &&
                'It was found done afterwards: nobody can tell whose doing it was.',
              ...writeFacts(cause).map(([name, text]) => `${name}: ${text}`),
            )
          : strangerWords(facts)),
        ...facts.standing.map((one) => `On the do-not-contact list: ${listWords(one)}.`),
      ],
    };
  });
}

const effective: ReadonlySet<unknown> = new Set(['acked', 'found', 'undone', 'unknown']);

function factsAbout(channel: string, evidence: Evidence): ChannelFacts {
  const { entries, recorded, contacts, asOf, problems } = evidence;
  const write = entries.findLast(
    ({ type, part, outcome }) =>
      type === 'write' && (part === channel || part === '') && effective.has(outcome),
  );
  const member = recorded?.channels[channel];
  const states = contacts?.map(({ channels }) => channels[channel] ?? 'none') ?? [];
  const shown = ['opt_in', 'opt_out'].find((one) => states.includes(one)) ?? 'none';
  const [unmanaged] = problems
    .filter(({ part }) => part === channel)
    .flatMap(({ cause }) => (isUnmanagedCause(cause) ? [unmanagedCauses[cause].as] : []));
  let from: MailAnswer['from'] = contacts ? 'platform' : 'snapshot';
  const known = recorded ? (member?.is ?? 'none') : null;
  let state: string | null = contacts ? shown : known;
  if (unmanaged && state === null) state = 'opt_in';
  if (asOf !== null) [from, state] = ['log', write?.after ?? null];
  // A later write that certainly opted the person in ended what an entry says.
  const isLifted = ({ channel: of, until }: ListEntries[number]): boolean =>
    of !== '*' &&
    write?.after === 'opt_in' &&
    write['outcome'] !== 'unknown' &&
    write.at > (until ?? '');
  const listed = evidence.listed.filter((one) => one.channel === channel || one.channel === '*');
  const standing = listed.filter((one) => !isLifted(one));
  const isOpen = state === 'opt_in' || state === null;
  return {
    channel,
    state,
    from,
    evidence,
    member,
    write,
    cause: write && state !== null && write.after === state ? write : undefined,
    standing,
    // For the past an entry decides, if it is certain and not earlier than the last write.
    deciding: standing.findLast(
      ({ through, cause, until }) =>
        asOf !== null &&
        isOpen &&
        through === 'address' &&
        certain[cause] !== undefined &&
        (!write || write.at <= (until ?? '')),
    ),
    unmanaged,
    barred: contacts
      ?.filter(({ left }) => left)
      .map(({ status }) => status ?? 'unsubscribed from all mail')[0],
  };
}

/** The causes that say for certain that the person receives no mail. */
const certain: Readonly<Record<string, string>> = {
  opt_out: 'the person unsubscribed on the platform',
  unsubscribed: 'the person unsubscribed from all mail on the platform',
  blocked: 'the platform blocked the person',
  complaint: 'the person complained about mail',
  suppressed: 'the platform suppressed the person',
  operator: 'an operator decided so',
};

const places = {
  platform: 'the platform says subscribed',
  snapshot: 'the recorded state says subscribed',
  log: 'the last write says subscribed',
  list: '',
} as const satisfies Record<MailAnswer['from'], string>;

/** What is so of people who are gone from the CRM and subscribed with a contact of others. */
const unmanagedWords: Readonly<Record<UnmanagedAs, string>> = {
  deleted: 'the CRM marks the person as deleted, and the contact is not managed by this mirror',
  outOfScope:
    'the configuration leaves the person out, and the contact is not managed by this mirror',
};

const decisionWords = {
  waiting: 'awaits approval',
  approved: 'is approved for the next run',
  rejected: 'was rejected by an operator',
};

/** The conflicts in which the CRM wants the person in the channel. */
const wantedIn: ReadonlySet<ProblemCause> = new Set([
  'left-all-mail',
  'left-channel',
  'left-replaced-channel',
  'left-before',
  'left-former-address',
  'subscription-removed',
  'opt-out-doubtful',
  'own-opt-out',
  'undone',
  'vanished',
  'erased',
]);

function whereabouts({ recorded, entries, listed }: Evidence): string {
  const last = entries.findLast(({ type }) => type === 'write');
  const isDone = last?.['outcome'] === 'acked' || last?.['outcome'] === 'found';
  if (last?.['op'] === 'delete' && isDone) {
    return `this mirror deleted the contact on ${dayOf(last.at)}`;
  }
  const gone = listed.findLast(({ cause }) => cause === 'vanished');
  if (!gone && !recorded) return 'nothing is recorded of the person';
  // The contact was there when it was last seen, and when this mirror last wrote to it.
  const known = [gone?.after, recorded?.seenAt, isDone ? last?.at : undefined]
    .flatMap((at) => at ?? [])
    .filter((at) => at <= (gone?.until ?? at))
    .toSorted();
  const after = known.at(-1) ?? null;
  const when = gone ? between({ after, until: gone.until }) : `after ${dayOf(after)}`;
  return `the contact was removed from the platform ${when}, and not by this mirror`;
}

function crmLead(channel: string, { wants, hasInvalid, statedOut }: Evidence): string {
  if (!wants) return statedOut.includes(channel) ? 'the CRM has said no; ' : '';
  if (hasInvalid) return 'a record in the CRM is invalid; ';
  const isSilent = wants.length > 0 && wants.every((of) => of[channel] === null);
  return isSilent ? 'the CRM states no opinion; ' : '';
}

/** Returns the day of a time in UTC as customers read it: 3 May 2026 */
function dayOf(at: string | null | undefined): string {
  return at === null || at === undefined ? 'an unknown day' : dayText(at);
}

/** Returns when something was done on the platform: on a day, between two, or by one. */
function between({ after, until }: { after: string | null; until: string | null }): string {
  if (after === null) return `by ${dayOf(until)}`;
  const [from, to] = [dayOf(after), dayOf(until)];
  return from === to ? `on ${to}` : `between ${from} and ${to}`;
}

function strangerWords({ write, member, evidence }: ChannelFacts): string[] {
  const when = member && member.until !== null ? `, ${timeWords(member)}` : '';
  const who = member?.by === 'platform' ? [`The person or another program did this${when}.`] : [];
  if (!write) return ['The audit log has no write to this channel.', ...who];
  const left = write.after === null ? 'what it left is not known' : `it left ${write.after}`;
  const last = `The last write is entry ${write.seq} of ${write.at} (${String(write['op'])}); ${left}.`;
  if (evidence.asOf !== null) return [last];
  return [last, 'No write of this mirror made the present state.', ...who];
}

function listWords({ cause, after, until }: ListEntries[number]): string {
  return `${cause}, ${timeWords({ after, until: until ?? '' })}`;
}
