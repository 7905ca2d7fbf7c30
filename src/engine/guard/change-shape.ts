/**
 * Finds what the people that a run would delete have in common. This is slow, so it works in parts.
 */
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Shape } from '../report/guard-rules.ts';
import type { FreshId } from '../../snapshot/guards/guarded-shape.ts';
import type { RunContext } from '../context/run-context.ts';
import { eachPart, pagesOf } from '../context/work-in-parts.ts';

/** The only record type that has a shape, because only people have a mail domain and a CRM id. */
const guardedKind = 'contact';

type Whole = Pick<RunContext, 'snapshot'>;

const pageOfIds = 500;

/** Returns what the people that a guard counts as new have in common. */
export function* shapeOf(run: Whole, guard: GuardClass): Generator<undefined, Shape> {
  const domainShare = yield* domainShareOf(run, guard);
  return { domainShare, rows: yield* rowsOf(run, guard) };
}

/** Counts the records that we own, and how many of them have this mail domain. */
export function* ownedOf(
  { snapshot: { shaping, ranges } }: Whole,
  kind: RecordTypeName,
  domain = '',
): Generator<undefined, { all: number; same: number }> {
  const owned = { all: 0, same: 0 };
  yield* eachPart(ranges.ofRecorded(kind), (range) => {
    const { all, same } = shaping.owned(kind, { range, domain });
    owned.all += all;
    owned.same += same;
  });
  return owned;
}

function* domainShareOf(run: Whole, guard: GuardClass): Generator<undefined, number | undefined> {
  const { guarded, shaping } = run.snapshot;
  const domains = new Set<string>();
  yield* eachPart(guarded.ranges(guard), (range) => {
    for (const domain of shaping.domains({ ...range, guard })) domains.add(domain);
    return domains.size <= 1;
  });
  if (domains.size > 1) return undefined;
  const { all, same } = yield* ownedOf(run, guardedKind, [...domains][0]);
  return all === 0 ? 0 : same / all;
}

function* rowsOf(run: Whole, guard: GuardClass): Generator<undefined, Set<number>> {
  const { guarded, shaping, stage } = run.snapshot;
  shaping.clearIds();
  yield* eachPart(guarded.ranges(guard), (range) => {
    stage(() => shaping.addIds({ ...range, guard }));
  });
  const rows = new Set<number>();
  let last: FreshId | undefined;
  let length = 0;
  const pages = pagesOf((last?: FreshId) => shaping.nextIds(last, pageOfIds));
  yield* eachPart(pages, (page) => {
    for (const id of page) {
      if (last && shaping.isBetween(guardedKind, last, id)) {
        rows.add(length);
        length = 0;
      }
      length += 1;
      last = id;
    }
  });
  return rows.add(length);
}
