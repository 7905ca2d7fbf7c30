/** Answers in one sentence for each channel whether a person is subscribed, and why. */
import type { ProblemCause } from '../../../domain/record-problem.ts';
import {
  isUnmanagedCause,
  type UnmanagedAs,
  unmanagedCauses,
} from '../../../domain/unmanaged-people.ts';
import type { EntryDocument } from '../../../views/audit/entry-document.ts';
import type { ListEntries } from '../../../views/dossier/person-records.ts';
import type { RecordDocument } from '../../../views/state/record-document.ts';
import { whyGone } from '../../../views/lookup/missing-people.ts';

/** What the answers follow from. */
export interface AnswerFacts {
  document: RecordDocument;
  /** The person's entries in the audit log, oldest first. */
  entries: readonly EntryDocument[];
  listed: ListEntries;
  /** The other addresses that the CRM has for the person now. */
  movedTo: readonly string[];
}

/** An answer: what is so, and since when and why. */
export interface ChannelAnswer {
  isSubscribed: boolean;
  /** Whole sentences; '' if nothing more is known. */
  why: string;
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

/** Returns the answer for a channel. */
export function answerOf(facts: AnswerFacts, channel: string): ChannelAnswer {
  const { recorded, problems } = facts.document;
  const unmanaged = problems
    .filter(({ part }) => part === channel)
    .map(({ cause }) => cause)
    .find(isUnmanagedCause);
  if (unmanaged) {
    return { isSubscribed: true, why: unmanagedWords[unmanagedCauses[unmanaged].as] };
  }
  const isWanted = problems.some(({ part, cause }) => part === channel && wantedIn.has(cause));
  const out = (why: string): ChannelAnswer => ({
    isSubscribed: false,
    why: [why, isWanted ? 'The CRM still says yes.' : ''].filter(Boolean).join(' '),
  });
  if (!recorded) return out('Nothing is recorded of this channel.');
  const { allMail, id, defaults } = recorded;
  const is = recorded.channels[channel];
  if (id === null) return out('');
  if (allMail) {
    const when = allMail.until === null ? '' : ` ${between(allMail)}`;
    return out(`The person left all mail on the platform${when}${causeIn(allMail.causes)}.`);
  }
  if (!is) return out('No subscription was ever seen.');
  if (is.is === 'opt_in') return { isSubscribed: true, why: optedIn(facts, channel) };
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

function optedIn({ entries }: AnswerFacts, channel: string): string {
  const write = lastWrite(
    entries,
    ({ op, part }) => part === channel && (op === 'create' || op === 'opt_in' || op === 'opt_out'),
  );
  if (!write || write['op'] === 'opt_out' || !isDone(write)) {
    return 'It was so when this mirror first looked.';
  }
  return `Opted in by this mirror on ${write.at}, because the CRM says so.`;
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

function causeIn(causes: readonly string[]): string {
  return causes.length === 0 ? '' : ` (${causes.join(', ')})`;
}

/** Returns when something was done on the platform: between A and B, or before B. */
export function between({ after, until }: { after: string | null; until: string | null }): string {
  return after === null ? `before ${until}` : `between ${after} and ${until}`;
}
