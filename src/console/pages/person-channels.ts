/**
 * Answers for each channel whether a person is subscribed, and why, what the next run would do, and
 * what awaits a decision, as far as the snapshot tells. It asks nobody: what the CRM or the
 * platform says by now may be different.
 */
import type { ProblemCause } from '../../domain/problem-causes.ts';
import {
  isUnmanagedCause,
  type UnmanagedAs,
  unmanagedCauses,
} from '../../domain/unmanaged-people.ts';
import { renderProblem } from '../../domain/errors.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import type { Key } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { rejectedForMs } from '../../engine/report/guard-text.ts';
import { weekMs } from '../../engine/report/guard-rules.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { instant } from '../../compose/output/format-values.ts';
import type { EntryDocument } from '../../views/audit/entry-document.ts';
import type { ListEntries } from '../../views/dossier/person-records.ts';
import type { RecordDocument } from '../../views/state/record-document.ts';
import { whyGone } from '../../views/lookup/missing-people.ts';
import { approvalFinder } from '../../views/lookup/standing-problems.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';

/** What the answers follow from. */
export interface AnswerFacts {
  document: RecordDocument;
  /** The person's entries in the audit log, oldest first. */
  entries: readonly EntryDocument[];
  listed: ListEntries;
  /** The other addresses that the CRM has for the person now. */
  movedTo: readonly string[];
}

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

/** What is so of people who are gone from the CRM and subscribed with a contact of others. */
const unmanagedWords: Readonly<Record<UnmanagedAs, string>> = {
  deleted: 'The CRM marks the person as deleted, and the contact is not managed by this mirror.',
  outOfScope:
    'The configuration leaves the person out, and the contact is not managed by this mirror.',
};

/** Returns what comes first about somebody who is not on the platform; undefined for others. */
export function whereaboutsOf({ document, entries, listed }: AnswerFacts): string | undefined {
  const { recorded } = document;
  if (recorded && recorded.id !== null) return undefined;
  const last = lastWrite(entries, ({ op }) => op === 'delete');
  if (last && isDone(last))
    return `No longer on the platform: deleted by this mirror on ${last.at}.`;
  const gone = listed.findLast(({ cause }) => cause === 'vanished');
  if (gone) {
    // The contact was there when it was last seen, and when this mirror last wrote to it.
    const wrote = last === undefined ? lastWrite(entries, isDone)?.at : undefined;
    const known = [gone.after, recorded?.seenAt, wrote].flatMap((at) => at ?? []);
    const after =
      known
        .filter((at) => at <= (gone.until ?? ''))
        .toSorted()
        .at(-1) ?? null;
    const when = between({ after, until: gone.until });
    return `No longer on the platform since ${when}, and not by this mirror.`;
  }
  if (!recorded) return undefined;
  const seen = recorded.seenAt === null ? '' : ` since some time after ${recorded.seenAt}`;
  return `No longer on the platform${seen}, and not by this mirror.`;
}

/** Returns the answer for a channel; `why` is whole sentences, or '' if nothing more is known. */
export function answerOf(
  facts: AnswerFacts,
  channel: string,
): { isSubscribed: boolean; why: string } {
  const { recorded, problems } = facts.document;
  const unmanaged = problems
    .filter(({ part }) => part === channel)
    .map(({ cause }) => cause)
    .find(isUnmanagedCause);
  if (unmanaged) {
    return { isSubscribed: true, why: unmanagedWords[unmanagedCauses[unmanaged].as] };
  }
  const isWanted = problems.some(({ part, cause }) => part === channel && wantedIn.has(cause));
  const out = (why: string) => ({
    isSubscribed: false,
    why: [why, isWanted ? 'The CRM still says yes.' : ''].filter(Boolean).join(' '),
  });
  if (!recorded) return out('Nothing is recorded of this channel.');
  const { allMail, id, defaults } = recorded;
  const is = recorded.channels[channel];
  if (id === null) return out('');
  if (allMail) {
    const when = allMail.until === null ? '' : ` ${between(allMail)}`;
    const causes = allMail.causes.length === 0 ? '' : ` (${allMail.causes.join(', ')})`;
    return out(`The person left all mail on the platform${when}${causes}.`);
  }
  if (!is) return out('No subscription was ever seen.');
  if (is.is === 'opt_in') {
    const ops: unknown[] = ['create', 'opt_in', 'opt_out'];
    const write = lastWrite(facts.entries, ({ op, part }) => part === channel && ops.includes(op));
    const isOurs = write && write['op'] !== 'opt_out' && isDone(write);
    const why = isOurs
      ? `Opted in by this mirror on ${write.at}, because the CRM says so.`
      : 'It was so when this mirror first looked.';
    return { isSubscribed: true, why };
  }
  if (is.by === 'us') return out(optedOut(facts, is));
  if (is.doubtful || defaults.includes(channel)) {
    return out('The platform shows an opt-out, and nobody is known to have made it.');
  }
  const when = is.until === null ? '' : ` ${between(is)}`;
  return out(`The person left on the platform${when}.`);
}

type Channel = NonNullable<RecordDocument['recorded']>['channels'][string];

function optedOut(
  { document, movedTo }: AnswerFacts,
  { acknowledgedAt, until, cause, statedBy }: Channel,
): string {
  const at = acknowledgedAt ?? until;
  const when = at === null ? '' : ` on ${at}`;
  const records = statedBy.length === 1 ? 'record' : 'records';
  const who = statedBy.length === 0 ? '' : ` (${records} ${statedBy.join(', ')})`;
  const why: Readonly<Record<string, string>> = {
    stated: `the CRM says so${who}`,
    absence: 'the person was missing from the CRM',
    flag: 'the CRM marked the person as deleted',
    address: movedTo.length === 0 ? 'the CRM has another address' : whyGone(document, movedTo),
    undone: 'an operator took the opt-in back (`undo`)',
  };
  const because = cause === null ? '' : `, because ${why[cause] ?? cause}`;
  return `Opted out by this mirror${when}${because}.`;
}

function lastWrite(
  entries: readonly EntryDocument[],
  isMeant: (entry: EntryDocument) => boolean,
): EntryDocument | undefined {
  return entries.findLast((entry) => entry.type === 'write' && isMeant(entry));
}

function isDone({ outcome }: EntryDocument): boolean {
  return outcome === 'acked' || outcome === 'found';
}

/** Returns when something was done on the platform: between A and B, or before B. */
export function between({ after, until }: { after: string | null; until: string | null }): string {
  return after === null ? `before ${until}` : `between ${after} and ${until}`;
}

/** The outlook for one channel. */
export interface ChannelOutlook {
  channel: string;
  /** What happens next: nothing, or what prevents or delays a change. */
  next: string;
  /** How that is shown: nothing to do, something is under way, or somebody has to act. */
  is: 'good' | 'busy' | 'bad';
  /** Why, one line each. */
  why: readonly string[];
  /** Whether the page of what awaits approval is the place to go to. */
  isHeld: boolean;
  /** The cause of the conflict, if there is one that `resolve` may settle. */
  conflict: ProblemCause | undefined;
}

/**
 * Returns the outlook for each of the channels. What prevents or delays a change comes first,
 * because nothing else is sent until that is over.
 */
export function outlooksOf(
  { document, held }: { document: RecordDocument; held: readonly HeldOutlook[] },
  channels: readonly string[],
): ChannelOutlook[] {
  return channels.map((channel) => ({
    channel,
    ...calm,
    ...(resolved(document, channel) ??
      problem(document, channel) ??
      decided(held, channel) ??
      open(document, channel) ??
      nothing(document)),
  }));
}

/** What differs from an outlook in which there is nothing to do. */
type Next = Partial<ChannelOutlook> & { next: string };

const calm = { is: 'good', why: [], isHeld: false, conflict: undefined } as const;

function resolved({ recorded }: RecordDocument, channel: string): Next | undefined {
  const by = recorded?.channels[channel]?.resolved;
  if (!by || recorded.settled) return undefined;
  const why = [`resolved as an opt-in by ${by.by}: ${by.reason}`];
  return { is: 'busy', next: 'the next run opts the person in, if the CRM still says so', why };
}

function problem({ problems, refused }: RecordDocument, channel: string): Next | undefined {
  const found = problems.filter(
    ({ part, class: of }) => of !== 'held' && (part === channel || part === ''),
  );
  const [first] = found;
  if (!first) return undefined;
  const why = found.map(
    ({ since, reason, fix }) => `since ${since}: ${renderProblem({ reason, fix })}`,
  );
  const conflict = first.class === 'conflict' && first.part === channel ? first.cause : undefined;
  const again = refused.find(({ part }) => part === first.part)?.retryAt;
  const next = {
    conflict: 'nothing is sent: a conflict',
    invalid: 'nothing but opt-outs is sent: a record of the CRM cannot be used',
    rejected:
      again === undefined || again === null
        ? 'skipped until the record changes, or until somebody tries it again'
        : `refused by the platform; tried again from ${again}`,
    held: 'awaiting approval',
  }[first.class];
  return { is: 'bad', next, why, conflict };
}

/** Returns what awaits a decision first, because that is what somebody has to do. */
function decided(held: readonly HeldOutlook[], channel: string): Next | undefined {
  const mine = held.filter((one) => one.channel === channel || one.channel === '');
  const of = (is: HeldOutlook['is']) => mine.find((one) => one.is === is);
  const one = of('waiting') ?? of('approved') ?? of('rejected');
  if (!one) return undefined;
  const { what, by, reason, until } = one;
  if (one.is === 'waiting') {
    const why = until === null ? [] : [`From ${until} on, it needs no approval.`];
    return { is: 'bad', next: `awaits a decision: ${what}`, why, isHeld: true };
  }
  if (one.is === 'approved') {
    const why = [`Approved${byWords({ by, reason })}.`];
    return { is: 'busy', next: `waits for the next run: ${what}`, why, isHeld: true };
  }
  const next = `nothing to do: rejected by ${by ?? 'somebody'} until ${until}: ${reason}`;
  return { next, why: [`What was rejected: ${what}.`], isHeld: true };
}

function open(document: RecordDocument, channel: string): Next | undefined {
  const one = document.open.find(({ part }) => part === channel || part === '');
  if (!one) return undefined;
  const change = changeName(one.op, false);
  if (one.state === 'planned') {
    const next = `${change}: planned, and not sent yet`;
    return { is: 'busy', next, why: [`run ${one.run}`] };
  }
  const why = [`sent ${one.sentAt ?? one.plannedAt} by run ${one.run}`];
  const next = `only opt-outs, until the outcome of "${change}" is known`;
  return { is: 'busy', next, why };
}

function nothing({ recorded }: RecordDocument): Next {
  if (!recorded) return { next: 'nothing, until a run finds the person in the CRM' };
  const why = recorded.protected ? ['protected by contacts.protect'] : [];
  if (!recorded.reset) return { next: 'nothing to do', why };
  return { is: 'busy', next: 'the next run reads the person anew', why };
}

/** A change that does not pass by itself. */
export interface HeldOutlook {
  /** The guard, as the configuration names it. */
  guard: string;
  /** The channel; '' if the change concerns the whole person. */
  channel: string;
  is: 'waiting' | 'approved' | 'rejected';
  /** What it is and why: opt out, because the person is missing from the CRM. */
  what: string;
  /** Who decided, and why; null while nobody has. */
  by: string | null;
  reason: string | null;
  /** When a rejection ends, or when an opt-out needs no approval any more; null if never. */
  until: string | null;
}

/** Returns these changes, with the decisions in force. `whyGone`: why the person is not wanted. */
export function heldOf(
  snapshot: Snapshot,
  { config, now }: Seen,
  { key, document, whyGone }: { key: Key; document: RecordDocument; whyGone: string },
): HeldOutlook[] {
  const { awaitingApproval } = snapshot;
  const approvalOf = approvalFinder(snapshot, { approvers: config.approvers, now });
  const decisions = awaitingApproval.decisionsOn('contact', key, now - weekMs);
  const changeWords = ({
    guard,
    op,
    part,
  }: {
    guard: GuardClass;
    op: string;
    part: string;
  }): string =>
    `${changeName(op, false)}${part === '' ? ' the person' : ''}, because ${
      guard === 'delete' ? whyGone : 'the CRM says so'
    }`;
  // From when on a stated opt-out needs no approval any more.
  const endOf = (guard: string, part: string): string | null =>
    document.awaitingApproval.find(
      (one) => one.guard === guard && (one.channel === null || one.channel === part),
    )?.until ?? null;
  const waiting = awaitingApproval.waitingOf('contact', key).map((one): HeldOutlook => {
    const approval = approvalOf({ kind: 'contact', key, ...one });
    const guard = guardRows[one.guard].configKey;
    return {
      guard,
      channel: one.part,
      is: approval ? 'approved' : 'waiting',
      what: changeWords(one),
      by: approval?.by ?? null,
      reason: approval?.reason ?? null,
      until: approval ? null : endOf(guard, one.part),
    };
  });
  const rejected = decisions
    .filter(({ is }) => is === 'rejected')
    .map((one): HeldOutlook => {
      const { part: channel, by, reason } = one;
      const until = instant(one.at + rejectedForMs);
      const guard = guardRows[one.guard].configKey;
      return { guard, channel, is: 'rejected', what: changeWords(one), by, reason, until };
    });
  return [...waiting, ...rejected];
}
