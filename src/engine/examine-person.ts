/** Examines one person: what a run would find and decide now. Writes nothing. */
import type { Change } from '../domain/change.ts';
import { type ExpectedError, Interrupted, isExpected } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import type { ContactStates } from '../records/contact/observe/contact-state.ts';
import type { Decision } from '../records/decision.ts';
import { proveOwn } from './account/account-binding.ts';
import { decideChanges, type RunGate } from './decide/decide-changes.ts';
import { isInForce, quarantineOf } from './context/circuit-breaker.ts';
import type { Mirror, RunOptions } from './context/mirror-context.ts';
import { readSource, type SourceRead } from './read/source-read.ts';
import { inRun } from './begin-run.ts';
import { lookUp } from './observe/observe-platform.ts';
import { type Findings, noFindings } from './context/run-results.ts';
import { statesOf } from './read/record-states.ts';

/** The findings and the decision that a run would reach now. */
export interface Examined {
  /** How the source was read, or why it was not; in that case the decision is meaningless. */
  source: SourceRead | ExpectedError;
  /** Why the platform was not read, if so; the decision is then based on the recorded state. */
  unread: 'not asked' | ExpectedError | undefined;
  states: ContactStates;
  decision: Decision;
  /** The changes to send now. While an outcome is unknown, these are only opt-outs. */
  sends: Change[];
  /** Changes that were decided and are withheld in this run, each with the gate that does it. */
  keptBack: { change: Change; gate: RunGate }[];
}

type Examination = Omit<RunOptions, 'mode' | 'writes' | 'only'> & { key: Key; offline: boolean };

/** Examines a person, on the platform unless `offline`; undefined without contacts. */
export async function examine(
  mirror: Mirror,
  { key, offline, ...options }: Examination,
): Promise<Examined | undefined> {
  const { contacts } = mirror;
  if (!contacts) return undefined;
  const how: RunOptions = { ...options, mode: { single: key }, writes: false, only: 'contacts' };
  return inRun(mirror, how, async ({ run: started, tally }) => {
    const { meta, retryLater, candidates, staging } = mirror.snapshot;
    // A run that writes nothing ignores the quarantine, but the result describes the next run that
    // writes.
    const quarantined = isInForce(quarantineOf(meta), mirror.clock.now());
    const run = { ...started, quarantined };
    const source = await attempt(readSource(run, contacts));
    const certified = 'complete' in source && source.complete;
    const lost = new Set(retryLater.parts('contact').map((one) => one.part));
    const known: Findings = { ...noFindings, certified, whole: certified, lost };
    const look = async (): Promise<undefined> => {
      // The recorded state is valid only for the account of the snapshot.
      await proveOwn(mirror, run.stop);
      await lookUp(run, contacts, { key, known });
    };
    const unread = offline ? 'not asked' : await attempt(look());
    const states = statesOf(run, { key, known });
    candidates.add('contact', key);
    const keptBack: Examined['keptBack'] = [];
    const onKeptBack = (change: Change, gate: RunGate) => void keptBack.push({ change, gate });
    await decideChanges({ run, contacts, known, tally, onKeptBack });
    const decision = contacts.decide(states);
    return { source, unread, states, decision, sends: [...staging.planned()], keptBack };
  });
}

async function attempt<T>(work: Promise<T>): Promise<T | ExpectedError> {
  try {
    return await work;
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return error;
  }
}
