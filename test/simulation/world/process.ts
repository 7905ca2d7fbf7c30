/** One process of crm-mirror, from its start to its end, on the files that the one before left. */
import { createHash } from 'node:crypto';
import { type AuditTrail, knownHead, noteGap } from '../../../src/store/memory/audit-trail.ts';
import { clearRestored } from '../../../src/compose/mirror-files.ts';
import { copiedAt } from '../../../src/store/database/meta-table.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { Busy, Interrupted, isExpected, Unavailable } from '../../../src/domain/errors.ts';
import { byGuard } from '../../../src/domain/guard-classes.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { takeLease, type Lease } from '../../../src/store/database/writer-lease.ts';
import {
  type Memory,
  memoryWithoutFile,
  openMemory,
  readMemory,
} from '../../../src/store/memory/memory.ts';
import { lookInto, openForRun, openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import type { Certificate, Source } from '../../../src/sources/source.ts';
import { boundMemory } from '../../../src/engine/context/do-not-contact-binding.ts';
import type { Mirror } from '../../../src/engine/context/mirror-context.ts';
import type { OnlyPeople } from '../../../src/engine/context/people-selection.ts';
import { run } from '../../../src/engine/run.ts';
import { addressOf } from '../../support/engine/sample-people.ts';
import { mirrorOf } from '../../support/engine/engine-stage.ts';
import { absenceOf } from '../checks/absence.ts';
import { checkAudit } from '../checks/audit-checks.ts';
import { telling } from './crm-changes.ts';
import { listening } from '../checks/departure-checks.ts';
import type { Known, Outing } from '../checks/checker-state.ts';
import type { CrmRecord, Reading } from './crm.ts';
import { createWire, timeoutMs, type Wire } from './faults.ts';
import { killing, placeOf } from './snapshot-files.ts';
import { auditOf, clockOf, createLife, memoryOf, snapshotOf, type Life } from './process-life.ts';
import type { Reached } from '../coverage.ts';
import type { RunStep } from '../story/steps.ts';
import { isCrowd, type Story } from '../story/story.ts';
import type { Counted } from './traffic.ts';
import type { Unanswered } from '../checks/unanswered.ts';
import type { World } from './world.ts';

/** What outlives a process. */
export interface Ground {
  world: World;
  known: Known;
  unanswered: Unanswered;
  reached: Reached;
  /** Of the snapshot. */
  path: string;
  /** What the CRM was when it was read last. */
  last: Export;
  /** What the CRM has told of people, each time: a cursor names one of them. */
  told: (readonly CrmRecord[])[];
  /** Our clock is ahead by so much. */
  aheadMs: number;
  /** Used since there is this snapshot. */
  keys: Set<RunStep['key']>;
  /** What the checkers find while a process lives. */
  found: Error[];
  log(line: string): void;
  /** Breaks a rule of the engine; nothing does but a test of the simulation itself. */
  broken: (mirror: Mirror) => Mirror;
}

export interface Export {
  people: readonly CrmRecord[];
  templates: readonly CrmRecord[];
}

export interface Lived<Done = Summary> {
  /** Undefined when it was killed, or threw. */
  done: Done | undefined;
  killed: boolean;
  /** It refused to write for an organization that is not proven to be the snapshot's. */
  strange: boolean;
  outing: Outing;
  counts: Counted;
}

/** Pages so small that a few people fill several, and change places between them. */
const pageSizes = { few: [3, 2], crowd: [20, 13] } as const;

/** What a process does with its mirror. */
interface Work<Done> {
  /** Undefined: not that. */
  forgets: string | undefined;
  work(
    mirror: Mirror,
    leave: { stop: AbortSignal; abort: AbortSignal },
    outing: Outing,
  ): Promise<Done>;
}

/** A run. */
export function live(ground: Ground, step: RunStep): Promise<Lived> {
  begin(ground, step);
  return lead(ground, step, {
    forgets: undefined,
    async work(mirror, leave, outing) {
      const undone = runToUndo(mirror, step);
      outing.undoes = undone !== undefined;
      const { snapshot } = mirror;
      const restored = copiedAt(snapshot.meta) !== undefined;
      const mode = restored ? 'full' : step.mode;
      const done = await run(mirror, {
        mode: undone === undefined ? mode : 'undo',
        restored,
        undo: undone === undefined ? undefined : { run: undone },
        writes: !step.plans,
        only: step.only,
        onlyPeople: step.chosen && listOf(step.chosen, ground.world.story),
        progress: () => undefined,
        ...leave,
      });
      if (!step.plans) clearRestored(snapshot, done);
      return done;
    },
  });
}

/** Returns the run that the step undoes, of those that have changed anything, and wholly ended. */
function runToUndo({ snapshot }: Mirror, { undoes }: RunStep): string | undefined {
  if (undoes === undefined) return undefined;
  const isFit = (id: string): boolean => {
    const states = new Set([...snapshot.journal.tally(id)].flat().map(({ state }) => state));
    return (
      states.has('acked') &&
      (['planned', 'sent', 'unknown'] as const).every((one) => !states.has(one))
    );
  };
  const fit = snapshot.runs.newest(50).filter(({ id }) => isFit(id));
  return fit[undoes % Math.max(1, fit.length)]?.id;
}

/** Some of the people, by an address on each line. */
export function listOf(chosen: readonly number[], { people }: Pick<Story, 'people'>): OnlyPeople {
  const words = [...new Set(chosen.map((one) => addressOf(one % people.length)))];
  return { file: 'people.txt', entries: words.map((word, at) => ({ line: at + 1, word })) };
}

/** Any process; of the step counts what it meets. */
export async function lead<Done extends object>(
  ground: Ground,
  step: RunStep,
  { forgets, work }: Work<Done>,
): Promise<Lived<Done>> {
  const { world } = ground;
  const stop = new AbortController();
  const abort = new AbortController();
  const life = createLife(step.killed, (touch) => {
    if (touch === step.rival && !step.plans) startRival(ground);
    if (touch === step.jump?.touch) jump(ground, step.jump.seconds, 'our clock jumps');
    if (touch !== step.stopped) return;
    noteRun(ground, 'asked to stop');
    ground.log('         SIGTERM');
    queueMicrotask(() => stop.abort(new Interrupted('SIGTERM')));
    void world.clock.sleep(8000).then(() => abort.abort(new Interrupted('SIGTERM')));
  });
  const outing = { ...outingOf(ground, step), forgets, undoes: false };
  const found = (error: unknown): void => find(ground, error);
  const wire = createWire({ ...ground, step, life, outing, found });
  const opened = step.plans ? look(ground) : open(ground);
  const mirror = mirrorIn(ground, { step, life, outing, wire, opened });
  const leave = { stop: stop.signal, abort: abort.signal };
  const running = work(ground.broken({ ...mirror, timeoutMs }), leave, outing);
  // A dead process may fail as it likes; nobody is there to see it.
  running.catch(() => undefined);
  const ending = await world.clock.run(Promise.race([ended(running), life.died]));
  if (life.dead) noteRun(ground, 'killed');
  life.end();
  close(ground, { ...opened, killed: life.dead });
  const done = typeof ending === 'string' ? undefined : ending;
  if (life.dead && forgets !== undefined) ground.known.audit.excuse(ground.path);
  if (opened.audit) checkAudit(ground.path, ground.known, done !== undefined);
  const strange = ending === 'strange';
  return { done, killed: life.dead, strange, outing, counts: wire.counts() };
}

interface Parts {
  step: RunStep;
  life: Life;
  outing: Outing;
  wire: Wire;
  opened: Opened;
}

function mirrorIn(ground: Ground, { step, life, outing, wire, opened }: Parts): Mirror {
  const { world } = ground;
  const people = sourceOf(life, step, outing.people);
  return mirrorOf({
    send: wire.send,
    snapshot: snapshotOf(life, opened.snapshot),
    memory: memoryOf(life, opened.memory),
    audit: opened.audit && auditOf(life, opened.audit),
    clock: clockOf(life, world.clock, () => ground.aheadMs),
    random: seeded(world.story.chance + step.latency),
    apiKey: world.keys[step.key],
    ...world.mapped(configuredIn(world.story)),
    contacts: world.story.tells
      ? telling(ground, people, { life, step, reading: outing.people })
      : people,
    templates: sourceOf(life, step, outing.templates),
    returns: listening({ ...ground, life, found: (error) => find(ground, error) }),
  });
}

/** What the configuration of a story says. */
export function configuredIn(story: Story) {
  const absence = absenceOf(story);
  const policy = { ...story, ...absence.policy };
  return { ...absence, policy, pageSizes: pageSizes[isCrowd(story) ? 'crowd' : 'few'] };
}

/** What came of it; else what kind of error it ended with that a run may end with. */
async function ended<Done>(running: Promise<Done>): Promise<Done | 'threw' | 'strange'> {
  try {
    return await running;
  } catch (error) {
    if (isExpected(error)) return /is not proven/.test(error.message) ? 'strange' : 'threw';
    throw error;
  }
}

function find({ found }: Ground, error: unknown): void {
  found.push(error instanceof Error ? error : new Error(String(error)));
}

interface Opened {
  snapshot: Snapshot;
  memory: Memory;
  /** A plan takes none. */
  lease: Lease | undefined;
  /** A plan has none. */
  audit: AuditTrail | undefined;
}

/** As a command that writes does it. */
export function open({ path, world, known: what }: Ground, waitMs?: number): Opened {
  const lease = takeLease(path, waitMs);
  const at = world.clock.now();
  const { snapshot, aside } = openForRun(path, { at, admit: () => undefined });
  const wrong = aside !== undefined && `${aside} was set aside, and is whole`;
  what.judge('an undamaged snapshot is not set aside', wrong);
  nameAlike(snapshot);
  snapshot.fence();
  const known = boundMemory(snapshot.meta);
  const randomHex = (bytes: number) => '7f'.repeat(bytes);
  const memory = openMemory(placeOf(path), { known, acceptLost: false, randomHex });
  const { log } = memory;
  const gap = noteGap(log, knownHead(snapshot.meta), at);
  what.judge('the audit log has no gap', gap ?? false);
  return { snapshot, lease, memory, audit: { log, keepMs: 1e14 } };
}

/** As a command that only looks does it. */
function look({ path }: Ground): Opened {
  const snapshot = lookInto(path) ?? openSnapshot(path, { inMemory: true });
  nameAlike(snapshot);
  const memory = readMemory(placeOf(path), boundMemory(snapshot.meta)) ?? memoryWithoutFile();
  return { snapshot, memory, lease: undefined, audit: undefined };
}

/** Who may not be named by address goes by the same hash whenever the story is told. */
function nameAlike({ meta }: Snapshot): void {
  const key = '7f'.repeat(32);
  if (meta.get('name-key') !== key) meta.set('name-key', key);
}

function noteRun({ reached }: Ground, what: string): void {
  reached.note('run', what);
}

/** What is certain of a run before it begins. */
function begin(
  ground: Ground,
  { mode, plans, only, reading, key, latency, chosen }: RunStep,
): void {
  noteRun(ground, mode);
  noteRun(ground, `the CRM is read ${reading}`);
  if (plans) noteRun(ground, 'plan only');
  if (only !== undefined) noteRun(ground, `only ${only}`);
  if (isCrowd(ground.world.story)) noteRun(ground, 'more than seven people');
  if (key !== 'everything')
    noteRun(ground, `the key may ${key === 'read' ? 'only read' : 'do nothing'}`);
  if (chosen) noteRun(ground, 'limited to some people');
  if (latency === 0) noteRun(ground, 'without latency');
}

/**
 * Which of two wills is newer can be told by clocks that are right, and by no others; and for how
 * long somebody is absent, while one of the two is.
 */
export function jump(ground: Ground, seconds: number, when: string): void {
  const { resubscribe, dates } = ground.world.story;
  if (resubscribe !== 'never' || dates !== 'right') return;
  noteRun(ground, when);
  ground.aheadMs += seconds * 1000;
}

/** While one process writes, no other may. */
function startRival(ground: Ground): void {
  ground.log('         a second process is started');
  noteRun(ground, 'a second process is started');
  let isIn = false;
  try {
    // In virtual time nothing is gained by waiting.
    const { snapshot, memory, lease } = open(ground, 0);
    lease?.release();
    memory.close();
    snapshot.close();
    isIn = true;
  } catch (error) {
    if (!(error instanceof Busy)) throw error;
  }
  try {
    ground.known.judge('a second process writes nothing', isIn && 'a second process got the lease');
  } catch (error) {
    find(ground, error);
  }
}

export function close(
  { path }: Ground,
  { snapshot, memory, lease, killed }: Opened & { killed: boolean },
): void {
  if (killed) {
    killing(path, snapshot.close);
    killing(placeOf(path).path, memory.close);
  } else {
    snapshot.close();
    memory.close();
  }
  lease?.release();
}

function outingOf(
  { world, last, aheadMs, keys, known }: Ground,
  { reading, mode, only, key, chosen, undoes }: RunStep,
): Omit<Outing, 'forgets' | 'undoes'> {
  const { people, templates } = world;
  const now: Export = structuredClone({ people, templates });
  const read = reading === 'unchanged' ? last : now;
  const certified = reading !== 'cut short, and it shows';
  const ourStart = world.clock.now() + aheadMs;
  return {
    startedAt: world.clock.monotonic(),
    ourStart,
    through: byGuard(() => new Set()),
    withdrawn: new Set(),
    approved: new Map(),
    missed: new Set(),
    approvals: known.approvals.inForce(ourStart, undoes !== undefined),
    rejected: known.rejections.all(),
    isLoaded: known.approvals.isLoaded(),
    mode,
    only,
    mapping: world.mapped({}).manner,
    chosen: chosen && new Set(listOf(chosen, world.story).entries.map(({ word }) => word)),
    proves: [...keys].some((one) => one !== key),
    people: { records: shorten(misplace(read.people, reading), reading), certified },
    templates: { records: shorten(read.templates, reading), certified },
    shown: new Map(),
    answered: [],
    refused: false,
    leftRefused: 0,
  };
}

/** What an export says whose column is wrong. */
function misplace(
  records: readonly CrmRecord[],
  reading: RunStep['reading'],
): readonly CrmRecord[] {
  if (reading === 'with the opt-outs empty')
    return records.map((record) => ({ ...record, unsubscribed: '' }));
  if (reading !== 'with the answers a row off') return records;
  return records.map((record, at) => ({
    ...record,
    ch_news: records[(at + 1) % records.length]?.['ch_news'],
  }));
}

function shorten(records: readonly CrmRecord[], reading: RunStep['reading']): readonly CrmRecord[] {
  if (reading === 'empty') return [];
  if (!reading.startsWith('cut short')) return records;
  return records.slice(0, Math.ceil(records.length / 2));
}

function sourceOf(life: Life, { reading }: RunStep, { records, certified }: Reading): Source {
  // The snapshot keeps it, and may hold nobody's address for that.
  const name = createHash('sha1').update(JSON.stringify(records)).digest('hex');
  const certificate: Certificate = certified
    ? { complete: true, reading: name }
    : { complete: false, reading: name, why: 'cut short', fix: 'export again' };
  return {
    async *read() {
      for (const [at, value] of records.entries()) {
        await life.wait(Promise.resolve());
        if (reading === 'failing' && at === Math.floor(records.length / 2)) break;
        yield [{ where: `record ${at + 1}`, value }];
      }
      if (reading === 'failing') throw new Unavailable('the CRM does not answer', { acted: 'no' });
      return certificate;
    },
    still: (other) => other === name,
  };
}
