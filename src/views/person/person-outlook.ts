/** What is next for a channel, as far as the snapshot tells: nobody is asked. */
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { renderProblem } from '../../domain/errors.ts';
import { byWords, changeName } from '../../compose/output/format-values.ts';
import { whyGone } from '../lookup/missing-people.ts';
import type { Tone } from '../sections.ts';
import type { PersonDocument } from './person-document.ts';

export interface Outlook {
  next: string;
  is: Exclude<Tone, 'quiet'>;
  why: readonly string[];
  /** Whether the page of what awaits approval is the place to go to. */
  isHeld: boolean;
  /** The cause of the conflict, if there is one that `resolve` may settle. */
  conflict: ProblemCause | undefined;
}

/** What prevents or delays a change comes first: nothing else is sent until that is over. */
export function outlookFor(document: PersonDocument, channel: string): Outlook {
  const found =
    resolved(document, channel) ??
    problem(document, channel) ??
    decided(document, channel) ??
    open(document, channel) ??
    nothing(document);
  return { is: 'good', why: [], isHeld: false, conflict: undefined, ...found };
}

/** What differs from an outlook in which there is nothing to do. */
type Next = Partial<Outlook> & { next: string };

function resolved({ snapshot }: PersonDocument, channel: string): Next | undefined {
  const by = snapshot?.channels[channel]?.resolved;
  if (!by || snapshot.settled) return undefined;
  const why = [`resolved as an opt-in by ${by.by}: ${by.reason}`];
  return { is: 'busy', next: 'the next run opts the person in, if the CRM still says so', why };
}

function problem({ problems, parked }: PersonDocument, channel: string): Next | undefined {
  const found = problems.filter(
    ({ part, class: of }) => of !== 'held' && (part === channel || part === ''),
  );
  const [first] = found;
  if (!first) return undefined;
  const why = found.map(
    ({ since, reason, fix }) => `since ${since}: ${renderProblem({ reason, fix })}`,
  );
  const conflict = first.class === 'conflict' && first.part === channel ? first.cause : undefined;
  const again = parked.find((one) => one.channel === first.part)?.retryAt ?? null;
  const next = {
    conflict: 'nothing is sent: a conflict',
    invalid: 'nothing but opt-outs is sent: a record of the CRM cannot be used',
    rejected:
      again === null
        ? 'skipped until the record changes, or until somebody tries it again'
        : `refused by the platform; tried again from ${again}`,
    held: 'awaiting approval',
  }[first.class];
  return { is: 'bad', next, why, conflict };
}

/** Returns what awaits a decision first, because that is what somebody has to do. */
function decided(document: PersonDocument, channel: string): Next | undefined {
  const { decisions, snapshot } = document;
  const mine = decisions.filter((one) => one.channel === channel || one.channel === '');
  const of = (is: string) => mine.find((one) => one.is === is);
  const one = of('waiting') ?? of('approved') ?? of('rejected');
  if (!one) return undefined;
  const { guard, op, by, reason, until } = one;
  const gone = whyGone({ absence: snapshot?.absence }, snapshot?.moved?.to ?? []);
  const because = guard === 'deletes' ? gone : 'the CRM says so';
  const what = `${changeName(op, false)}${one.channel === '' ? ' the person' : ''}, because ${because}`;
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

function open({ history }: PersonDocument, channel: string): Next | undefined {
  const one = history.find(
    (change) =>
      (change.channel === channel || change.channel === '') && openStates.has(change.outcome),
  );
  if (!one) return undefined;
  const change = changeName(one.op, false);
  if (one.outcome === 'planned') {
    const next = `${change}: planned, and not sent yet`;
    return { is: 'busy', next, why: [`run ${one.run}`] };
  }
  const why = [`sent ${one.sentAt ?? one.at} by run ${one.run}`];
  const next = `only opt-outs, until the outcome of "${change}" is known`;
  return { is: 'busy', next, why };
}

/** The states of changes that are planned, or sent and not answered. */
const openStates: ReadonlySet<string> = new Set(['planned', 'sent', 'unknown']);

function nothing({ snapshot }: PersonDocument): Next {
  if (!snapshot) return { next: 'nothing, until a run finds the person in the CRM' };
  const why = snapshot.protected ? ['protected by contacts.protect'] : [];
  if (snapshot.reset) return { is: 'busy', next: 'the next run reads the person anew', why };
  if (!snapshot.absence) return { next: 'nothing to do', why };
  const next = 'full runs decide, because the person is missing from the CRM';
  return { is: 'busy', next, why };
}
