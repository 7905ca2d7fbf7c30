/** How a run begins: what it finds, what those before it have left, and what it is called. */
import { createCircuitBreaker } from './context/circuit-breaker.ts';
import { approvalsOf } from './guard/plan-approval.ts';
import type { Clock } from '../domain/clock.ts';
import type { RunState } from './context/run-state.ts';
import type { RunContext } from './context/run-context.ts';
import {
  isRecord,
  type Mirror,
  type MirrorPart,
  modeName,
  onlyKey,
  type RunOptions,
} from './context/mirror-context.ts';
import { bindDoNotContactList } from './context/do-not-contact-binding.ts';
import { holds, quarantineOf, sayQuarantine } from './context/platform-quarantine.ts';
import { createFacts } from './context/learned-facts.ts';
import { createTally } from './context/run-tally.ts';
import { loadCursors } from './finish/source-cursor.ts';
import { untilDone } from './context/for-each-range.ts';
import { gatherIn } from './context/group-commit.ts';

export function beginRun(mirror: Mirror, options: RunOptions): RunState {
  const { snapshot } = mirror;
  const clock = even(mirror.clock);
  const at = clock.now();
  const id = idOf(mirror, at);
  const quarantine = quarantineOf(snapshot.meta);
  const isHeld = holds(quarantine, at);
  const quarantined = isHeld && options.writes;
  const groupCommit = gatherIn(snapshot, clock);
  const facts = createFacts(snapshot, options.writes);
  const platformTime = { isAsked: false };
  const own = { clock, id, startedAt: at, quarantined, facts, groupCommit, platformTime };
  const run: RunContext = { ...mirror, ...options, ...own };
  const parts = mirror.parts.filter(
    ({ type }) => !options.only || options.only === `${type.name}s`,
  );
  snapshot.staging.clear();
  snapshot.candidates.clear();
  if (options.writes) bindDoNotContactList(run);
  const since = options.writes ? start(run, parts) : loadCursors(mirror, parts, options);
  const approvals = approvalsOf(run);
  const { ended: endedBefore } = mirror.locks.count();
  // Last: what is begun has to end.
  mirror.locks.begin(id, onlyKey(options) === undefined ? 'all' : 'one');
  const { keys, ids } = mirror.locks.superseded(id);
  return {
    run,
    parts,
    begun: parts,
    since,
    isOvertakenEarly: keys.size + ids.size > 0,
    endedBefore,
    isEvent: isRecord(options.mode),
    taken: undefined,
    tally: createTally(snapshot),
    breaker: createCircuitBreaker(),
    known: new Map(),
    unread: new Map(),
    reasons: quarantined ? [sayQuarantine(quarantine)] : [],
    stuck: undefined,
    notes:
      isHeld && !quarantined ? [...mirror.notes, sayQuarantine(quarantine)] : [...mirror.notes],
    plan: undefined,
    forecast: undefined,
    sliceEndsAt: 0,
    failure: undefined,
    approvals,
    held: new Map(),
    population: {},
    unplanned: 0,
    rounds: 0,
  };
}

/** Written down, with what those before it have left; answers from where changes may be read. */
function start(run: RunContext, parts: readonly MirrorPart[]): RunState['since'] {
  const { snapshot, locks, id, mode, startedAt: at } = run;
  const others = locks.others(id);
  const isAlone = onlyKey(run) !== undefined;
  return snapshot.transaction(() => {
    let isLeft = false;
    for (const { type } of parts) {
      snapshot.journal.doubt(type.name, others);
      if (!isAlone && snapshot.journal.hasLeft(type.name, others)) isLeft = true;
    }
    snapshot.runs.start({ id, mode: modeName(mode), at });
    const since = loadCursors(run, parts, run);
    // Somebody was left behind in the middle, whose record may never change again.
    return isLeft ? new Map() : since;
  });
}

/** What runs that have ended left planned is not sent any more. */
export async function abandonUnsent({
  run,
  parts,
}: Pick<RunState, 'run' | 'parts'>): Promise<void> {
  const { journal, transaction } = run.snapshot;
  for (const { type } of parts) {
    await untilDone(run, () => {
      const others = [...run.locks.others(run.id), run.id];
      return transaction(() => journal.abandon(type.name, run.startedAt, others));
    });
  }
}

/** Of runs about one person there may be many in a second. */
function idOf({ snapshot, random }: Mirror, at: number): string {
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  for (;;) {
    const own = Math.floor(random() * 0x10000);
    const id = `${stamp}-${own.toString(16).padStart(4, '0')}`;
    if (!snapshot.runs.get(id)) return id;
  }
}

/** Within a run time goes on evenly, whatever is done to the machine's clock. */
function even({ now, monotonic, sleep }: Clock): Clock {
  const offset = now() - monotonic();
  return { now: () => Math.round(offset + monotonic()), monotonic, sleep };
}
