/**
 * Says for each channel what the next run would do about a person, as far as the snapshot tells.
 * It asks nobody: what the CRM or the platform says by now may be different.
 */
import { renderProblem } from '../../domain/errors.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { memberWords } from '../lookup/person-text.ts';
import { changeName } from '../output/change-words.ts';
import type { RecordDocument } from './record-document.ts';

/** The outlook for one channel. */
export interface ChannelOutlook {
  channel: string;
  /** What is recorded: opt in, opt out by us, … */
  recorded: string;
  /** What the next run does. */
  next: string;
  /** Why, one line each. */
  why: readonly string[];
  /** Whether somebody has to act: a conflict, a refusal or an approval. */
  needsSomebody: boolean;
  /** The cause of the conflict, if there is one that `resolve` may settle. */
  conflict: ProblemCause | undefined;
}

type Next = Omit<ChannelOutlook, 'channel' | 'recorded'>;

/** Returns the outlook for each of the channels. */
export function outlooksOf(
  document: RecordDocument,
  channels: readonly string[],
): ChannelOutlook[] {
  const known = document.recorded?.channels ?? {};
  return channels.map((channel) => {
    const is = known[channel];
    const recorded = is ? memberWords(is) : 'nothing';
    return { channel, recorded, ...nextOf(document, channel) };
  });
}

const calm = { needsSomebody: false, conflict: undefined };

/** Asks what prevents or delays a change first, because nothing else is sent until that is over. */
function nextOf(document: RecordDocument, channel: string): Next {
  return (
    resolved(document, channel) ??
    problem(document, channel) ??
    awaiting(document, channel) ??
    open(document, channel) ??
    settledOrNew(document)
  );
}

function resolved({ recorded }: RecordDocument, channel: string): Next | undefined {
  const by = recorded?.channels[channel]?.resolved;
  if (!by || recorded.settled) return undefined;
  const why = [`resolved as an opt-in by ${by.by}: ${by.reason}`];
  return { ...calm, next: 'the next run opts the person in, if the CRM still says so', why };
}

function problem({ problems, refused }: RecordDocument, channel: string): Next | undefined {
  const found = problems.filter(({ part }) => part === channel || part === '');
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
  return { next, why, needsSomebody: true, conflict };
}

function awaiting({ awaitingApproval }: RecordDocument, channel: string): Next | undefined {
  const one = awaitingApproval.find((held) => held.channel === channel || held.channel === null);
  if (!one) return undefined;
  const since = one.since === null ? [] : [`since ${one.since}`];
  const until = one.until === null ? [] : [`from ${one.until} on it needs no approval`];
  const why = [[`withheld by \`guards.${one.guard}\``, ...since, ...until].join(', ')];
  return { next: 'a change is awaiting approval', why, needsSomebody: true, conflict: undefined };
}

function open(document: RecordDocument, channel: string): Next | undefined {
  const one = document.open.find(({ part }) => part === channel || part === '');
  if (!one) return undefined;
  const change = changeName(one.op, false);
  if (one.state === 'planned') {
    return { ...calm, next: `${change}: planned, and not sent yet`, why: [`run ${one.run}`] };
  }
  const why = [`sent ${one.sentAt ?? one.plannedAt} by run ${one.run}`];
  return { ...calm, next: `only opt-outs, until the outcome of "${change}" is known`, why };
}

function settledOrNew({ recorded }: RecordDocument): Next {
  if (!recorded) {
    return {
      ...calm,
      next: 'decided when a run finds the person in the CRM',
      why: ['not recorded'],
    };
  }
  const why = recorded.protected ? ['protected by contacts.protect'] : [];
  if (recorded.settled) {
    const next =
      'nothing, unless the CRM or the platform has changed: the last run left nothing to do';
    return { ...calm, next, why };
  }
  return { ...calm, next: 'decided again by the next run that reads the person', why };
}
