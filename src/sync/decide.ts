/** Brings the candidates of one kind before its truth table, and stages what comes of them. */
import type { Change } from '../model/change.ts';
import type { Key, RecordedRow } from '../model/record.ts';
import type { Kind, States } from '../kind/kind.ts';
import type { Listing } from './observe.ts';
import type { Run } from './mirror.ts';
import type { Tally } from './tally.ts';

/** What is known of one kind in this run. */
export interface Knowledge {
  /** Whether the reading of the source was certified. */
  certified: boolean;
  /** Undefined in a fast run: nothing was listed. */
  listing: Listing | undefined;
}

const pageOfKeys = 500;

export function decide(run: Run, kind: Kind, known: Knowledge, tally: Tally): void {
  const { narrowing } = run.snapshot;
  let after = '';
  let done = 0;
  for (;;) {
    const keys = narrowing.next(kind.name, after, pageOfKeys);
    if (keys.length === 0) return;
    run.snapshot.stage(() => keys.forEach((key) => decideOne(run, kind, { key, known, tally })));
    after = keys.at(-1) ?? after;
    done += keys.length;
    run.progress({ stage: 'deciding', kind: kind.name, done, of: undefined });
  }
}

function decideOne(
  run: Run,
  kind: Kind,
  { key, known, tally }: { key: Key; known: Knowledge; tally: Tally },
): void {
  const { staging } = run.snapshot;
  const states = statesOf(run, kind, { key, known });
  const decision = kind.decide(states);
  staging.forgetNoticed(kind.name, key);
  for (const problem of decision.problems) tally.notice(problem);
  const news = decision.changes.length > 0 || differs(decision.note, states.recorded);
  if (decision.note && news) staging.addNoted(decision.note);
  for (const old of decision.forgets) staging.addForgotten(kind.name, old);
  if (decision.adopts) tally.adopted(kind.name);
  for (const change of withoutParked(run, states, decision.changes, tally))
    staging.addPlanned(change);
}

function statesOf(run: Run, kind: Kind, { key, known }: { key: Key; known: Knowledge }): States {
  const { staging, recorded } = run.snapshot;
  const observed = staging.observed(kind.name, key);
  const looked = staging.lookedAt(kind.name, key);
  const listed = known.listing?.complete;
  const first = observed[0];
  const desired = staging.desired(kind.name, key);
  const renamed = first && recorded.ofId(kind.name, first.id, key);
  const replaced = renamed && staging.desired(kind.name, renamed.key).length === 0;
  const ids = desired.map(({ id }) => id).filter((id) => id !== '');
  return {
    key,
    desired,
    recorded: recorded.get(kind.name, key),
    former: [
      ...(replaced && known.certified ? [renamed] : []),
      ...recorded.ofOrigins(kind.name, ids, key),
    ],
    observed,
    sight: typeof looked === 'number' || (listed && looked === undefined) ? 'listed' : 'assumed',
    certified: known.certified,
    at: typeof looked === 'number' ? looked : (known.listing?.at ?? run.clock.now()),
  };
}

/** Names what the source wants of a record: a refused change is tried again when this changes. */
export function wishOf(desired: readonly { fingerprint: string }[]): string {
  return desired.map((row) => row.fingerprint).join(' ');
}

/**
 * A change the platform refused is not sent again until the record changes; an opt-out is, with
 * rising delay. What builds on a creation that is parked waits with it.
 */
function withoutParked(run: Run, states: States, changes: Change[], tally: Tally): Change[] {
  const [first] = changes.length > 0 ? changes : states.desired;
  if (!first) return changes;
  const { problems } = run.snapshot;
  const parked = problems.parked(first.kind, states.key);
  if (parked.length === 0) return changes;
  const wish = wishOf(states.desired);
  const now = run.clock.now();
  const waits = (change: Change): boolean =>
    parked.some(
      (known) =>
        known.part === change.part &&
        (change.op === 'opt_out' ? (known.retryAt ?? 0) > now : known.desired === wish),
    );
  const waiting = changes.filter(waits);
  for (const change of waiting) if (change.op === 'opt_out') tally.optOutWaits(change);
  const creates = waiting.some((change) => change.op === 'create');
  return changes.filter(
    (change) => !waiting.includes(change) && !(creates && change.target === undefined),
  );
}

/** A note that says nothing new is not written. */
function differs(note: RecordedRow | undefined, recorded: RecordedRow | undefined): boolean {
  if (!note) return false;
  return (
    !recorded ||
    note.id !== recorded.id ||
    note.body !== recorded.body ||
    note.shown !== recorded.shown ||
    note.desired !== recorded.desired
  );
}
