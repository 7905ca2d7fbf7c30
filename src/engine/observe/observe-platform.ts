/**
 * Observes the platform: lists all contacts, and proves that none is missing, or reads single
 * people: the person that a run is about, and those who were reset (`retry --read-again`). A full
 * run lists the latter anyway; a fast run reads each of them, so that it decides by what the
 * platform shows now.
 *
 * Offset pages shift while others write, so one pass proves nothing. The proof is a count: the
 * number of distinct ids created before the listing began is at least the total that the first page
 * stated. "Before" is by the platform's own clock: the Date of its response, or the newest record
 * on page one. If the count falls short, the list is read again with other page boundaries and
 * merged with the first pass. Then recorded records that appeared in neither are requested one by
 * one: a limited number, from a random one on.
 */
import type { Clock, Random } from '../../domain/clock.ts';
import {
  Interrupted,
  type Problem,
  RateLimited,
  Rejected,
  Unavailable,
  isExpected,
} from '../../domain/errors.ts';
import type { Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Page } from '../../records/contact/contacts.ts';
import { type Evidence, type NamedParts, evidenceOf } from '../../records/platform-facts.ts';
import type { RecordRange } from '../../store/database/key-range.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import type { PersonLock } from '../context/person-locks.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings, PlatformListing } from '../context/run-results.ts';
import { each, inTurns } from '../context/work-in-parts.ts';
import { personIsLocked } from '../read/partial-read.ts';
import { statesOf } from '../read/record-states.ts';
import { reasonOf } from '../read/source-read.ts';

interface Claim {
  total: number;
  /** When the pass began by the platform's clock, in milliseconds since the epoch. */
  began: number;
  date: number | undefined;
  evidence: Evidence | undefined;
}

const kind = 'contact';
const pagesAtOnce = 16;
/** A transaction costs about as much as staging a page. */
const stagedAtOnce = 1_000;

/** Nothing proves yet that it is complete. */
export interface FirstPass {
  listing: PlatformListing;
  claim: Claim;
}

/** Reads all pages of a list once. The rows still have to be indexed afterwards. */
export async function passOver(run: RunContext, contacts: MirrorContacts): Promise<FirstPass> {
  const [limit] = run.pageSizes;
  const startedAt = run.clock.now();
  const knownEntries = run.doNotContact.newest();
  const claim = await turnPages(run, contacts, { limit, add: run.snapshot.staging.addListed });
  const unproven = { complete: false, size: 0, organization: undefined };
  const times = { startedAt, endedAt: run.clock.now(), platformStartedAt: claim.date };
  return { listing: { ...unproven, ...times, knownEntries }, claim };
}

/** Proves that staging has all records, reads more if needed, and stores what pages prove. */
export async function proveListing(
  run: RunContext,
  contacts: MirrorContacts,
  { first: { claim, listing }, breaker }: { first: FirstPass; breaker: CircuitBreaker },
): Promise<PlatformListing> {
  const { staging } = run.snapshot;
  if (claim.evidence) run.facts.learn(claim.evidence);
  // The first page's total counts, because records created since then need not be in the listing.
  const isProven = (): boolean => staging.countCreatedBy(kind, claim.began) >= claim.total;
  let complete = isProven();
  let { endedAt } = listing;
  if (!complete) {
    for (const limit of run.pageSizes.slice(1)) {
      await turnPages(run, contacts, { limit, add: staging.addObserved });
      complete = isProven();
      if (complete) break;
    }
    if (!complete) await findMissing(run, contacts, breaker);
    complete ||= isProven();
    endedAt = run.clock.now();
  }
  return { ...listing, endedAt, complete, size: staging.countObserved(kind) };
}

/** States that the list did not show all contacts that the platform counts, and what follows. */
export function sayUnproven({ claim: { total } }: FirstPass): Problem {
  const reason =
    `the platform counts ${counted(total, 'contact')}, and its list did not show all of them: only ` +
    'a contact that is asked for by its id counts as deleted, and no approval ends with this run';
  return { code: 'note', reason, fix: 'if every run says so, ask the provider of the platform' };
}

/** Indexes what the first pass has found, in short steps, so that nothing waits long. */
export async function sortListed(run: RunContext): Promise<void> {
  const { staging, ranges, stage } = run.snapshot;
  // The last pages were staged just before, so a turn comes first.
  for await (const sort of inTurns(run, [() => undefined, ...staging.sortings])) sort();
  for await (const range of inTurns(run, ranges.ofListedIds(kind))) {
    stage(() => staging.forgetRelisted(range));
  }
}

/** Reads pages in parallel up to the stated total, then until one is not full. */
async function turnPages(
  run: RunContext,
  contacts: MirrorContacts,
  { limit, add }: { limit: number; add(rows: readonly ObservedRow[]): void },
): Promise<Claim> {
  const { stage } = run.snapshot;
  const rows: ObservedRow[] = [];
  const stageRows = (): void => stage(() => add(rows.splice(0)));
  const parts: NamedParts[] = [];
  let seen = 0;
  let last: Page = { rows: [], total: 0, date: undefined, parts: undefined, others: [] };
  const page = async (number: number): Promise<void> => {
    if (run.stop.aborted) throw reasonOf(run.stop);
    const found = await contacts.list({ page: number, limit }, run.stop);
    rows.push(...found.rows);
    if (found.parts) parts.push(found.parts);
    if (rows.length >= stagedAtOnce) stageRows();
    seen += found.rows.length;
    last = found;
    run.progress({ stage: 'listing', kind, done: seen, of: Math.max(found.total, seen) });
  };
  run.progress({ stage: 'listing', kind, done: 0, of: undefined });
  await page(1);
  const first = last;
  const pages = Math.ceil(first.total / limit);
  const between = Array.from({ length: Math.max(0, pages - 2) }, (_, at) => at + 2);
  await each(between, pagesAtOnce, page);
  for (
    let number = Math.max(2, pages);
    last.rows.length >= limit || number === pages;
    number += 1
  ) {
    await page(number);
  }
  stageRows();
  const { total, date } = first;
  const began = Math.max(first.date ?? 0, ...first.rows.map((row) => row.createdAt ?? 0));
  const evidence = evidenceOf({ pages: parts, count: seen, parts: contacts.channels });
  return { total, began: began || Number.MAX_SAFE_INTEGER, date, evidence };
}

const askedAtOnce = 16;
const askedAtLeast = 500;
const askedShare = 0.02;

/**
 * Adds the records that are found to the listing, and notes those that are gone. A refused route or
 * an unavailable platform ends the search; any other refusal concerns only its record. Throws on a
 * refused key and on an interruption.
 */
async function findMissing(
  run: RunContext,
  contacts: MirrorContacts,
  breaker: CircuitBreaker,
): Promise<void> {
  const { recorded, staging, stage } = run.snapshot;
  const most = Math.max(askedAtLeast, Math.floor(recorded.count(kind) * askedShare));
  const rows = await unlisted(run, most);
  let isOver = false;
  let done = 0;
  await each(rows, askedAtOnce, async (row) => {
    if (run.stop.aborted) throw reasonOf(run.stop);
    if (isOver) return;
    try {
      const { is, rows: found } = await contacts.find(row, run.stop);
      stage(() => {
        staging.addObserved(found, is === 'whole' ? row.key : undefined);
        if (is === 'whole') staging.addLooked(row.kind, row.key, run.clock.now());
      });
    } catch (error) {
      const refused = error instanceof Rejected && error.status !== 401;
      const unwell = error instanceof Unavailable || error instanceof RateLimited;
      if (!refused && !unwell) throw error;
      isOver ||= unwell || breaker.refuses(error);
    }
    done += 1;
    run.progress({ stage: 'listing', kind, done, of: rows.length });
  });
}

/** Returns at most `most` records that no page showed, in key order. */
export async function unlisted(
  run: { snapshot: Snapshot; clock: Clock; random: Random },
  most: number,
): Promise<RecordedRow[]> {
  const { recorded, ranges } = run.snapshot;
  const counts: { range: RecordRange; n: number }[] = [];
  for await (const range of inTurns(run, ranges.ofRecorded(kind))) {
    counts.push({ range, n: recorded.countUnlisted(range) });
  }
  const over = Math.max(0, counts.reduce((sum, { n }) => sum + n, 0) - most);
  let after = Math.floor(run.random() * (over + 1));
  const rows: RecordedRow[] = [];
  for (const { range, n } of counts) {
    const count = most - rows.length;
    if (after < n) rows.push(...recorded.unlisted({ ...range, from: after, most: count }));
    after = Math.max(0, after - n);
  }
  return rows;
}

export interface PersonFindings {
  key: Key;
  known: Findings;
}

/** Locks what the source knows of the person, and reads the person there. Throws Busy. */
export async function observePerson(
  run: RunContext,
  contacts: MirrorContacts,
  { lock, ...single }: PersonFindings & { lock: PersonLock | undefined },
): Promise<void> {
  const ids = run.snapshot.staging.idsOf(kind, single.key);
  if (lock?.extend({ keys: formerKeys(run, single), ids }) === false) throw personIsLocked();
  await lookUp(run, contacts, single);
}

/** Reads into staging what the platform shows about a person, with former addresses. */
export async function lookUp(
  run: RunContext,
  contacts: MirrorContacts,
  single: PersonFindings,
): Promise<void> {
  await stageOne(run, contacts, single.key);
  for (const key of formerKeys(run, single)) await stageOne(run, contacts, key);
}

/** Returns the keys to decide: the person's key, and former keys that no other record has now. */
export function keysOf(run: RunContext, single: PersonFindings): Key[] {
  const { staging } = run.snapshot;
  const former = formerKeys(run, single);
  return [single.key, ...former.filter((key) => staging.desired('contact', key).length === 0)];
}

/** Returns the other keys under which the person is recorded, based on the current source. */
function formerKeys(run: RunContext, single: PersonFindings): Key[] {
  return [...new Set(statesOf(run, single).former.map(({ row }) => row.key))];
}

/** Stages what was read about a record; a contact with another key goes under that one. */
export function stageObservation(
  { snapshot: { staging } }: RunContext,
  { key, rows }: { key: Key; rows: readonly ObservedRow[] },
): void {
  const isHere = ({ alias }: ObservedRow): boolean => alias === key;
  staging.addObserved(rows.filter(isHere), key);
  staging.addObserved(rows.filter((row) => !isHere(row)));
}

async function stageOne(run: RunContext, contacts: MirrorContacts, key: Key): Promise<void> {
  const { staging, recorded } = run.snapshot;
  const rows = await contacts.read({ key, id: recorded.get('contact', key)?.id }, run.stop);
  run.snapshot.stage(() => {
    stageObservation(run, { key, rows });
    staging.addLooked('contact', key, run.clock.now());
  });
}

const readAtMost = 100;

/** Holds any value while a record may be reset, so that other runs need not look for one. */
const resetName = 'reset of contacts';

/** Marks a person to be read again. Returns whether there is one. Call it in a transaction. */
export function markReset({ recorded, meta }: Snapshot, key: Key): boolean {
  const isRecorded = recorded.reset('contact', key) > 0;
  if (isRecorded) meta.set(resetName, 'yes');
  return isRecorded;
}

/**
 * Reads the reset people into staging and makes them candidates. Returns a note about those who
 * could not be read, and stay reset. Throws Interrupted, and unexpected errors.
 */
export async function readReset(
  run: RunContext,
  contacts: MirrorContacts,
  known: Findings,
): Promise<Problem[]> {
  const { meta, recorded, candidates, transaction } = run.snapshot;
  if (meta.get(resetName) === undefined) return [];
  const keys = recorded.resets('contact', readAtMost);
  if (keys.length === 0 && run.writes) transaction(() => meta.drop(resetName));
  for (const [at, key] of keys.entries()) {
    try {
      await lookUp(run, contacts, { key, known });
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      const people = counted(keys.length - at, 'reset person', 'reset people');
      const reason = `${people} could not be read again: ${error.message}`;
      return [{ code: 'note', reason, fix: 'the next run tries again' }];
    }
    candidates.add('contact', key);
  }
  return [];
}
