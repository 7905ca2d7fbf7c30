/**
 * Lists all contacts of the platform into staging, and proves that none is missing.
 *
 * Offset pages shift while others write, so one pass proves nothing. The proof is a count: the
 * number of distinct ids created before the listing began is at least the total that the first page
 * stated. "Before" is by the platform's own clock: the Date of its response, or the newest record
 * on page one. If the count falls short, the list is read again with other page boundaries and
 * merged with the first pass. Then the recorded records that appeared in neither pass are requested
 * one by one. Each costs a request, so their number is limited, and each run starts at a random
 * one.
 *
 * The first pass is indexed in one step, so it comes before any proof.
 */
import type { Page } from '../../records/contact/contacts.ts';
import { type Evidence, evidenceOf, type NamedParts } from '../../records/platform-facts.ts';
import type { ObservedRow, RecordedRow } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { each, inTurns } from '../context/work-in-parts.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { reasonOf } from '../read/source-read.ts';
import type { PlatformListing } from '../context/run-results.ts';
import { RateLimited, Rejected, Unavailable } from '../../domain/errors.ts';
import type { RecordRange } from '../../store/database/key-range.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import type { Snapshot } from '../../store/snapshot.ts';

interface Claim {
  total: number;
  /** When the pass began by the platform's clock, in milliseconds since the epoch. */
  began: number;
  date: number | undefined;
  evidence: Evidence | undefined;
}

const kind = 'contact';
const pagesAtOnce = 16;
/** So many records, because a transaction costs about as much as staging a page. */
const stagedAtOnce = 1_000;

/** What the first pass has found; nothing proves yet that it is complete. */
export interface FirstPass {
  listing: PlatformListing;
  claim: Claim;
}

/** Reads all pages of a list once. The rows still have to be indexed afterwards. */
export async function passOver(run: RunContext, contacts: MirrorContacts): Promise<FirstPass> {
  const [limit] = run.pageSizes;
  const at = run.clock.now();
  const knew = run.doNotContact.newest();
  const claim = await turnPages(run, contacts, { limit, add: run.snapshot.staging.addListed });
  const listing = {
    complete: false,
    size: 0,
    startedAt: at,
    knownEntries: knew,
    endedAt: run.clock.now(),
    platformStartedAt: claim.date,
    organization: undefined,
  };
  return { listing, claim };
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
    run.progress({
      stage: 'listing',
      kind,
      done: seen,
      of: Math.max(found.total, seen),
    });
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
 * an unavailable platform ends the search; any other refused request concerns only its record.
 * Records that were not requested remain unknown. Throws on a refused key and on an interruption.
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
