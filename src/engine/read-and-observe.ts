/**
 * Reads the CRM and observes the platform for each record type of a run. Stores what each step
 * returns immediately, so that a run that fails later still reports it.
 */
import { Busy, isExpected } from '../domain/errors.ts';
import type { RecordType } from '../records/record-type.ts';
import { each } from './context/work-in-parts.ts';
import { isRecord, onlyKey } from './context/mirror-context.ts';
import { excludePart, findingsOf, type RunState } from './context/run-state.ts';
import { noFindings } from './context/run-findings.ts';
import { type FirstPass, passOver, proveListing, sortListed } from './observe/certified-listing.ts';
import { observePerson } from './observe/person-observation.ts';
import { readReset } from './observe/reset-people.ts';
import { countAbsences, isAbsenceShown } from './read/absence-count.ts';
import { readPart } from './read/changed-records.ts';
import { readPerson } from './read/person-read.ts';
import { readingOf } from './read/record-states.ts';
import { sayMissing } from './read/source-read.ts';

/**
 * Locks the person that the run is about. If only the id of a CRM record is given, reads that
 * record to find the person; from then on the run is about that person.
 */
export async function lockPerson(state: RunState): Promise<void> {
  const { mode, locks } = state.run;
  if (typeof mode === 'string') return;
  if (!isRecord(mode)) {
    state.lock = await locks.take({ keys: [mode.single], ids: [] });
    return;
  }
  const part = state.parts.find(({ source }) => source.one);
  state.parts = part ? [part] : [];
  if (!part) return;
  const { lock, key, findings } = await readPerson(state.run, part, mode.record);
  state.lock = lock;
  state.known.set(part.type, findings);
  if (key === undefined) state.parts = [];
  else state.run = { ...state.run, mode: { single: key } };
}

/**
 * Reads the sources one after the other. If a source cannot be read, only its own record type is
 * left out of the run. Throws the source's error if no record type is left.
 */
export async function readSources(state: RunState): Promise<void> {
  const { run, mirror, reasons, notes, because, known, cursors, cursorless } = state;
  for (const part of state.parts) {
    const { type, source } = part;
    try {
      const found = { cursor: cursors.get(type), without: cursorless.get(type) };
      const read = await readPart(run, part, found);
      mirror.outages?.works(`${type.name}s`);
      if (read.because) because.push(read.because);
      known.set(type, { ...noFindings, ...readingOf(source, read) });
      notes.push(...sayMissing(run.snapshot, type.name, read.sizes));
      if (type.capabilities.personRead && run.selection && read.whole) {
        run.selection.choose(type.name);
        notes.push(...run.selection.say(read.sizes.valid));
      }
      if (read.complete || !type.needsCertificate) continue;
      const reason = `${read.why}, so only opt-outs are applied`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    } catch (error) {
      noteUnread(state, type, error);
      excludePart(state, part, error);
    }
  }
}

/** Records that a source cannot be read, unless the run was stopped or the file is in use. */
function noteUnread({ mirror, run }: RunState, { name }: RecordType, error: unknown): void {
  if (!isExpected(error) || error instanceof Busy || run.stop.aborted) return;
  mirror.outages?.failed(`${name}s`, error.problems[0], 'surely');
}

/**
 * Observes the platform: all of it in a full run, one person in a run about that person, and only
 * people who were reset in a fast run. If the key may not list a record type, only the recorded
 * state of that type is known. A record type that cannot be listed for other reasons is left out of
 * the run.
 */
export async function observe(state: RunState): Promise<void> {
  const { run, mirror, breaker, lock, known } = state;
  if (run.mode === 'fast') return observeReset(state);
  const key = onlyKey(run);
  if (key !== undefined) {
    return eachObserved(state, (type) =>
      observePerson(run, type, { key, known: findingsOf(state, type), lock }),
    );
  }
  const passes = new Map<RecordType, FirstPass>();
  run.snapshot.staging.beginListing();
  try {
    await eachObserved(state, async (type) => {
      passes.set(type, await passOver(run, type, mirror));
    });
  } finally {
    // The first passes of all record types are indexed together.
    await sortListed(run, state.parts);
  }
  await eachObserved(state, async (type) => {
    const first = passes.get(type);
    if (!first) return;
    const listing = await proveListing(run, type, { first, breaker, mirror });
    known.set(type, { ...findingsOf(state, type), listing });
  });
}

/**
 * Reads the people who were reset. Only a reading of the whole source tells what the CRM wants for
 * them.
 */
async function observeReset(state: RunState): Promise<void> {
  for (const { type } of state.parts) {
    const known = findingsOf(state, type);
    if (known.whole) state.notes.push(...(await readReset(state.run, type, known)));
  }
}

/** Does the work for all record types in parallel, and leaves out a type that fails. */
async function eachObserved(
  state: RunState,
  work: (type: RecordType) => Promise<void>,
): Promise<void> {
  const { parts, breaker } = state;
  await each(parts, parts.length, async (part) => {
    try {
      await work(part.type);
    } catch (error) {
      if (!breaker.refuses(error)) excludePart(state, part, error);
    }
  });
}

/** Decides whether absences count in this run, and counts them. */
export async function findAbsences(state: RunState): Promise<void> {
  const { run, known } = state;
  for (const { type } of state.parts) {
    const read = known.get(type);
    if (!read || !type.capabilities.absence) continue;
    const findings = { ...read, absenceCounts: isAbsenceShown(run, read) };
    known.set(type, findings);
    if (run.writes) await countAbsences(run, type, findings);
  }
}
