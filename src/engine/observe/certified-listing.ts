/**
 * Lists all of the platform into staging, and proves that nothing is missing.
 *
 * Offset pages shift while others write, so one pass proves nothing. The proof is a count: the
 * distinct ids that were created before the listing began are at least as many as the first page
 * said there were. "Before" is by the platform's own clock: the Date of its answer, or the newest
 * record of page one. If the count falls short, the list is read again with other page borders and
 * united with the first; then the recorded records that neither showed are asked for one by one.
 *
 * The first passes of all record types are sorted in together, so all of them come before a proof.
 */
import type { RecordType } from '../../records/record-type.ts';
import type { Page } from '../../records/listing-page.ts';
import { type Evidence, evidenceOf, type NamedParts } from '../../records/platform-facts.ts';
import type { ObservedRow } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { each, forEachRange } from '../context/work-in-parts.ts';
import { findMissing } from './missing-records.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { reasonOf } from '../read/source-read.ts';
import type { PlatformListing } from '../context/run-findings.ts';

/** The first page's word on how many records there are, and when that was. */
interface Claim {
  total: number;
  /** When the pass began, by the platform's clock; milliseconds since the epoch. */
  began: number;
  date: number | undefined;
  organization: string | undefined;
  /** Facts that the pages prove of the platform. */
  evidence: Evidence | undefined;
}

const pagesAtOnce = 16;
/** How many records are staged at once: a transaction costs about as much as staging a page. */
const stagedAtOnce = 1_000;

/** The first pass over a list. */
export type FirstPass = Omit<PlatformListing, 'complete'> & { claim: Claim };

/** Reads all pages of a list once. What it reads is still to be sorted in. */
export async function passOver(
  run: RunContext,
  type: RecordType,
  { pageSizes: [limit] }: Pick<Mirror, 'pageSizes'>,
): Promise<FirstPass> {
  const at = run.clock.now();
  const knew = run.doNotContact.newest();
  const claim = await turnPages(run, type, { limit, add: run.snapshot.staging.addListed });
  const { date, organization } = claim;
  return {
    startedAt: at,
    knownEntries: knew,
    endedAt: run.clock.now(),
    platformStartedAt: date,
    organization,
    claim,
  };
}

/** A first pass to prove, and what else a proof takes. */
interface Proving {
  first: FirstPass;
  breaker: CircuitBreaker;
  mirror: Pick<Mirror, 'pageSizes' | 'random'>;
}

/**
 * Proves that staging has all there is of a record type, reading more where the first pass does not
 * show it. Learns on the way what the pages tell of the platform itself.
 */
export async function proveListing(
  run: RunContext,
  type: RecordType,
  proving: Proving,
): Promise<PlatformListing> {
  const { evidence } = proving.first.claim;
  if (evidence) run.facts.learn(evidence);
  const listing = await prove(run, type, proving);
  if (type.keyedById) run.snapshot.staging.resolveKeys(type.name);
  return listing;
}

/** The first claim counts: records that were created since need not be there. */
async function prove(
  run: RunContext,
  type: RecordType,
  { first: { claim, ...listing }, breaker, mirror }: Proving,
): Promise<PlatformListing> {
  const { staging } = run.snapshot;
  const isProven = (): boolean => staging.countCreatedBy(type.name, claim.began) >= claim.total;
  if (isProven()) return { ...listing, complete: true };
  const [, ...others] = mirror.pageSizes;
  for (const limit of others) {
    await turnPages(run, type, { limit, add: staging.addObserved });
    if (isProven()) break;
  }
  if (!isProven()) await findMissing(run, type, { breaker, random: mirror.random });
  return { ...listing, complete: isProven(), endedAt: run.clock.now() };
}

/**
 * Sorts in what the first passes of all record types have found, in steps for which nothing in the
 * process has to wait long.
 */
export async function sortListed(run: RunContext, parts: readonly MirrorPart[]): Promise<void> {
  const { staging, ranges, stage } = run.snapshot;
  for (const sort of staging.sortings) {
    await run.clock.sleep(0);
    sort();
  }
  await run.clock.sleep(0);
  for (const { type } of parts) {
    await forEachRange(run, ranges.ofListedIds(type.name), (range) => {
      stage(() => staging.forgetRelisted(type.name, range));
    });
  }
}

/** Reads pages in parallel as far as the total reaches, then on to the first short one. */
async function turnPages(
  run: RunContext,
  type: RecordType,
  { limit, add }: { limit: number; add(rows: readonly ObservedRow[]): void },
): Promise<Claim> {
  const { stage } = run.snapshot;
  const rows: ObservedRow[] = [];
  const stageRows = (): void => stage(() => add(rows.splice(0)));
  const parts: NamedParts[] = [];
  let seen = 0;
  let last: Page = { rows: [], total: 0, date: undefined, organization: undefined };
  const page = async (number: number): Promise<void> => {
    if (run.stop.aborted) throw reasonOf(run.stop);
    const found = await type.list({ page: number, limit }, run.stop);
    rows.push(...found.rows);
    if (found.parts) parts.push(found.parts);
    if (rows.length >= stagedAtOnce) stageRows();
    seen += found.rows.length;
    last = found;
    run.progress({
      stage: 'listing',
      kind: type.name,
      done: seen,
      of: Math.max(found.total, seen),
    });
  };
  await page(1);
  const first = last;
  const pages = Math.ceil(first.total / limit);
  await each(range(2, pages - 1), pagesAtOnce, page);
  for (
    let number = Math.max(2, pages);
    last.rows.length >= limit || number === pages;
    number += 1
  ) {
    await page(number);
  }
  stageRows();
  const { total, date, organization } = first;
  const names = type.capabilities.channels?.names ?? [];
  const evidence = evidenceOf({ pages: parts, count: seen, parts: names });
  return { total, began: beginning(first), date, organization, evidence };
}

function beginning(first: Page): number {
  const created = first.rows.map((row) => row.createdAt ?? 0);
  const newest = Math.max(0, ...created);
  const began = Math.max(first.date ?? 0, newest);
  return began === 0 ? Number.MAX_SAFE_INTEGER : began;
}

function* range(from: number, to: number): Generator<number> {
  for (let number = from; number <= to; number += 1) yield number;
}
