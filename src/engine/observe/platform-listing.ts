/**
 * What the platform shows: all there is, when this is a full run; one person, when it is theirs. A
 * kind that the key may not list is known only by what is recorded; one that cannot be listed goes
 * alone.
 */
import { Busy } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import { knowledgeOf, leaveOut, type RunContext } from '../context/run-context.ts';
import { each } from '../context/bounded-concurrency.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { passOver, prove, type FirstPass } from './certified-listing.ts';
import { atHer } from '../read/person-read.ts';
import { formerKeys, lookUp } from './person-observation.ts';
import { forEachRange } from '../context/for-each-range.ts';

export async function listAll(course: RunContext): Promise<void> {
  const { run, known, brake } = course;
  if (run.mode === 'fast') return;
  const key = onlyKey(run);
  if (key !== undefined) return eachListed(course, (kind) => lookAtOne(course, kind, key));
  const { staging } = run.snapshot;
  const passed = new Map<RecordType, FirstPass>();
  staging.beginListing();
  try {
    await eachListed(course, async (kind) => void passed.set(kind, await passOver(run, kind)));
  } finally {
    await sortIn(course);
  }
  await eachListed(course, async (kind) => {
    const first = passed.get(kind);
    if (!first) return;
    if (first.claim.evidence) run.facts.learn(first.claim.evidence);
    const listing = await prove(run, kind, { first, brake });
    if (kind.keyedById) staging.resolveKeys(kind.name);
    known.set(kind, { ...knowledgeOf(course, kind), listing });
  });
}

/** Side by side. */
async function eachListed(
  course: RunContext,
  work: (kind: RecordType) => Promise<void>,
): Promise<void> {
  const { parts, brake } = course;
  await each(parts, parts.length, async (part) => {
    try {
      await work(part.kind);
    } catch (error) {
      if (!brake.refuses(error)) leaveOut(course, part, error);
    }
  });
}

/** In steps for which nothing in the process has to wait long. */
async function sortIn({ run, parts }: RunContext): Promise<void> {
  const { staging, ranges: spans, stage } = run.snapshot;
  for (const sort of staging.sortings) {
    await run.clock.sleep(0);
    sort();
  }
  await run.clock.sleep(0);
  for (const { kind } of parts) {
    await forEachRange(run, spans.ofListedIds(kind.name), (span) => {
      stage(() => staging.forgetRelisted(kind.name, span));
    });
  }
}

async function lookAtOne(course: RunContext, kind: RecordType, key: Key): Promise<void> {
  const { run } = course;
  const single = { key, known: knowledgeOf(course, kind) };
  const also = {
    keys: formerKeys(run, kind, single),
    ids: run.snapshot.staging.idsOf(kind.name, key),
  };
  if (course.taken?.also(also) === false) throw new Busy(atHer);
  await lookUp(run, kind, single);
}
