/**
 * Reads the CRM and observes the platform for each record type of a run. Stores what each step
 * returns immediately, so that a run that fails later still reports it.
 *
 * It counts in how many readings, and for how long, people have been missing from the CRM. A
 * certified reading of a full run counts once if the source is still unchanged after the platform
 * has been listed. A plan counts nothing, and uses the counts of earlier runs. The platform's time
 * is the `Date` header of the first response of its listing; without one, only our clock counts.
 */
import { Busy, isExpected } from '../domain/errors.ts';
import type { RecordType } from '../records/record-type.ts';
import { each, inTurns } from './context/work-in-parts.ts';
import { isRecord, onlyKey, mappingOf } from './context/mirror-context.ts';
import { excludePart, findingsOf, type RunState, noFindings } from './context/run-state.ts';
import { type FirstPass, passOver, proveListing, sortListed } from './observe/certified-listing.ts';
import { observePerson, readReset } from './observe/person-observation.ts';
import { readPart, readPerson } from './read/partial-read.ts';
import { readingOf } from './read/record-states.ts';
import { sayMissing } from './read/source-read.ts';
import { aheadOf } from './context/platform-knowledge.ts';
import { supersededKeys } from './context/run-context.ts';
import type { Key } from '../domain/record.ts';
import { identityOf } from './context/person-identity.ts';

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
      notes.push(...sayMissing(run.snapshot, type.name, read.sizes.missing));
      if (type.capabilities.personRead && run.selection && read.whole) {
        run.selection.choose(type.name);
        notes.push(...run.selection.say(read.sizes.valid));
      }
      if (read.complete || !type.needsCertificate) continue;
      const reason = `${read.why}, so only opt-outs are applied`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    } catch (error) {
      // A run that was stopped, or a file in use, is no outage.
      if (isExpected(error) && !(error instanceof Busy) && !run.stop.aborted)
        mirror.outages?.failed(`${type.name}s`, error.problems[0], 'surely');
      excludePart(state, part, error);
    }
  }
}

/**
 * Observes the platform: all of it in a full run, one person in a run about that person, and only
 * people who were reset in a fast run. If the key may not list a record type, only the recorded
 * state of that type is known. A record type that cannot be listed for other reasons is left out of
 * the run.
 */
export async function observe(state: RunState): Promise<void> {
  const { run, mirror, breaker, lock, known } = state;
  if (run.mode === 'fast') {
    // Only a reading of the whole source tells what the CRM wants for people who were reset.
    for (const { type } of state.parts) {
      const read = findingsOf(state, type);
      if (read.whole) state.notes.push(...(await readReset(run, type, read)));
    }
    return undefined;
  }
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

/** Does the work for all record types in parallel, and leaves out a type that fails. */
async function eachObserved(state: RunState, work: (type: RecordType) => Promise<void>) {
  const { parts, breaker } = state;
  await each(parts, parts.length, async (part) => {
    try {
      await work(part.type);
    } catch (error) {
      if (!breaker.refuses(error)) excludePart(state, part, error);
    }
  });
}

/**
 * Decides whether absences count in this run, which they do not in one about a few people. Deletes
 * the counts of people who are in the CRM again, and counts this reading for the others.
 */
export async function findAbsences(state: RunState): Promise<void> {
  const { run, known } = state;
  const { absences, ranges, transaction } = run.snapshot;
  const only = onlyKey(run);
  for (const { type } of state.parts) {
    const { name, capabilities } = type;
    const { absence } = capabilities;
    const read = known.get(type);
    if (!read || !absence) continue;
    const isFull = run.mode === 'full' && !run.selection;
    const absenceCounts = isFull && read.certified && read.still();
    known.set(type, { ...read, absenceCounts });
    if (!run.writes) continue;
    transaction(() => {
      if (only === undefined) absences.dropNamed(name);
      else absences.dropIfNamed(name, only);
    });
    if (!absenceCounts) continue;
    const platformAt = read.listing?.platformStartedAt;
    const times = { at: run.startedAt, platformAt, aheadMs: aheadOf(run) };
    // If the process dies halfway, no person is counted twice for one reading.
    for await (const range of inTurns(run, ranges.ofKeys(name))) {
      const but = supersededKeys(run, type);
      const reading = { name: read.reading, ...times, ...absence, but };
      transaction(() => absences.count(name, range, reading));
    }
  }
}

/**
 * Stores what the records of this reading state about each person, for the guards of later runs. It
 * comes after what the run withholds is stored, and before anything is sent: if the run is
 * interrupted, the next one knows what this one has read, and still knows what awaits approval.
 * People who were erased, under this address or as a record with these ids, are left out.
 */
export async function storeStated(state: RunState): Promise<void> {
  const { run, parts } = state;
  if (run.undo) return;
  const { stated, transaction } = run.snapshot;
  const isAny = run.doNotContact.erased() !== undefined;
  const mapping = mappingOf(run) ?? '';
  for (const { type } of parts) {
    if (!type.capabilities.channels) continue;
    const { certified: isCertified, whole: isWhole } = findingsOf(state, type);
    const certified = isCertified && run.selection === undefined;
    const whole = isWhole && onlyKey(run) === undefined;
    const isErased = (key: Key): boolean =>
      run.doNotContact
        .concerning(identityOf(run, type, key))
        .some(({ cause }) => cause === 'erasure');
    for await (const range of inTurns(run, stated.ranges(type.name))) {
      const erased = isAny ? stated.newKeys(type.name, range).filter(isErased) : [];
      const but = [...supersededKeys(run, type), ...erased];
      const reading = { but, certified, whole, mapping, at: run.clock.now() };
      transaction(() => stated.store(type.name, range, reading));
    }
  }
}
