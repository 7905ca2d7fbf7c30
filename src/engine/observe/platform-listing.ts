/**
 * What the platform shows: all there is, when this is a full run; one person, when it is theirs. A
 * kind that the key may not list is known only by what is recorded; one that cannot be listed goes
 * alone.
 */
import { Busy } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import { knowledgeOf, excludePart, type RunState } from '../context/run-state.ts';
import { each } from '../context/bounded-concurrency.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { passOver, prove, type FirstPass } from './certified-listing.ts';
import { atHer } from '../read/person-read.ts';
import { formerKeys, lookUp } from './person-observation.ts';
import { forEachRange } from '../context/for-each-range.ts';

export async function listAll(context: RunState): Promise<void> {
  const { run, known, breaker } = context;
  if (run.mode === 'fast') return;
  const key = onlyKey(run);
  if (key !== undefined) return eachListed(context, (type) => lookAtOne(context, type, key));
  const { staging } = run.snapshot;
  const passed = new Map<RecordType, FirstPass>();
  staging.beginListing();
  try {
    await eachListed(context, async (type) => void passed.set(type, await passOver(run, type)));
  } finally {
    await sortIn(context);
  }
  await eachListed(context, async (type) => {
    const first = passed.get(type);
    if (!first) return;
    if (first.claim.evidence) run.facts.learn(first.claim.evidence);
    const listing = await prove(run, type, { first, breaker });
    if (type.keyedById) staging.resolveKeys(type.name);
    known.set(type, { ...knowledgeOf(context, type), listing });
  });
}

/** Side by side. */
async function eachListed(
  context: RunState,
  work: (type: RecordType) => Promise<void>,
): Promise<void> {
  const { parts, breaker } = context;
  await each(parts, parts.length, async (part) => {
    try {
      await work(part.type);
    } catch (error) {
      if (!breaker.refuses(error)) excludePart(context, part, error);
    }
  });
}

/** In steps for which nothing in the process has to wait long. */
async function sortIn({ run, parts }: RunState): Promise<void> {
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

async function lookAtOne(context: RunState, type: RecordType, key: Key): Promise<void> {
  const { run } = context;
  const single = { key, known: knowledgeOf(context, type) };
  const also = {
    keys: formerKeys(run, type, single),
    ids: run.snapshot.staging.idsOf(type.name, key),
  };
  if (context.taken?.also(also) === false) throw new Busy(atHer);
  await lookUp(run, type, single);
}
