/**
 * Says for each channel what the next run would do about a person, as far as the snapshot tells.
 * It asks nobody: what the CRM or the platform says by now may be different.
 */
import { renderProblem } from '../../../domain/errors.ts';
import type { ProblemCause } from '../../../domain/record-problem.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import type { RecordDocument } from '../../../views/state/record-document.ts';
import { byWords } from '../../../compose/output/decision-words.ts';
import type { HeldOutlook } from './held-changes.ts';

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

type Next = Omit<ChannelOutlook, 'channel'>;

/** What the outlooks follow from. */
export interface OutlookFacts {
  document: RecordDocument;
  held: readonly HeldOutlook[];
}

/** Returns the outlook for each of the channels. */
export function outlooksOf(facts: OutlookFacts, channels: readonly string[]): ChannelOutlook[] {
  return channels.map((channel) => ({ channel, ...nextOf(facts, channel) }));
}

const calm = { is: 'good', why: [], isHeld: false, conflict: undefined } as const;

/** Asks what prevents or delays a change first, because nothing else is sent until that is over. */
function nextOf({ document, held }: OutlookFacts, channel: string): Next {
  return (
    resolved(document, channel) ??
    problem(document, channel) ??
    decided(held, channel) ??
    open(document, channel) ??
    nothing(document)
  );
}

function resolved({ recorded }: RecordDocument, channel: string): Next | undefined {
  const by = recorded?.channels[channel]?.resolved;
  if (!by || recorded.settled) return undefined;
  const why = [`resolved as an opt-in by ${by.by}: ${by.reason}`];
  const next = 'the next run opts the person in, if the CRM still says so';
  return { ...calm, is: 'busy', next, why };
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
  return { ...calm, is: 'bad', next, why, conflict };
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
    return { ...calm, is: 'bad', next: `awaits a decision: ${what}`, why, isHeld: true };
  }
  if (one.is === 'approved') {
    const next = `waits for the next run: ${what}`;
    return {
      ...calm,
      is: 'busy',
      next,
      why: [`Approved${byWords({ by, reason })}.`],
      isHeld: true,
    };
  }
  const next = `nothing to do: rejected by ${by ?? 'somebody'} until ${until}: ${reason}`;
  return { ...calm, next, why: [`What was rejected: ${what}.`], isHeld: true };
}

function open(document: RecordDocument, channel: string): Next | undefined {
  const one = document.open.find(({ part }) => part === channel || part === '');
  if (!one) return undefined;
  const change = changeName(one.op, false);
  if (one.state === 'planned') {
    const next = `${change}: planned, and not sent yet`;
    return { ...calm, is: 'busy', next, why: [`run ${one.run}`] };
  }
  const why = [`sent ${one.sentAt ?? one.plannedAt} by run ${one.run}`];
  const next = `only opt-outs, until the outcome of "${change}" is known`;
  return { ...calm, is: 'busy', next, why };
}

function nothing({ recorded }: RecordDocument): Next {
  if (!recorded) return { ...calm, next: 'nothing, until a run finds the person in the CRM' };
  const why = recorded.protected ? ['protected by contacts.protect'] : [];
  if (!recorded.reset) return { ...calm, next: 'nothing to do', why };
  return { ...calm, is: 'busy', next: 'the next run reads the person anew', why };
}
