/** Tells a story: the whole engine and the whole platform, in one process and in virtual time. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Summary } from '../../src/engine/report/run-summary.ts';
import { copiedKey } from '../../src/store/database/meta-table.ts';
import type { Mirror } from '../../src/engine/context/mirror-context.ts';
import {
  checkEnd,
  checkFiles,
  checkForbidden,
  checkOuting,
  checkRecorded,
  checkReleased,
  checkRequests,
} from './checks/end-checks.ts';
import { createKnown } from './checks/create-known.ts';
import { stateOf, storedIn } from './end-state.ts';
import { endApprovals, noteGuards, rememberStated } from './checks/held-checks.ts';
import { allowAgain, forgetOne, addressNamed } from './world/operator-commands.ts';
import { decideAbout, resetPerson, resolveConflict } from './world/operator-decisions.ts';
import { timeoutMs } from './world/faults.ts';
import { contentOf, readFiles, removeFiles, type Traces } from './world/snapshot-files.ts';
import { jump, live, type Ground, type Lived } from './world/process.ts';
import { checkQuiet, endingOf, isEmpty } from './checks/run-completeness.ts';
import { createReached, type Counts } from './coverage.ts';
import { type Judge, judgeTelling, restoredRules } from './checks/rules.ts';
import { stepsOf } from './story/story-endings.ts';
import { checkNotAsked } from './checks/rejections.ts';
import { checkResolved } from './checks/settlements.ts';
import {
  approval,
  calm,
  forgetting,
  type Forgetting,
  type RunStep,
  type Step,
} from './story/steps.ts';
import { isCrowd, type Story } from './story/story.ts';
import { whyProven } from './checks/binding-refusal.ts';
import { createUnanswered } from './checks/unanswered.ts';
import { inWords } from './story/story-text.ts';
import { createWorld, hour } from './world/world.ts';

export interface Told {
  /** What was wrong, if anything was. */
  wrong: Error | undefined;
  /** Virtual hours that passed. */
  hours: number;
  runs: number;
  requests: number;
  reached: Counts;
  /** What the platform holds in the end, as a number below 2^48: a hash of it. */
  state: number;
  /** The same of what the snapshot knows of the people. */
  stored: number;
}

export interface Telling {
  /** What the truth table has decided since it was last asked. */
  takeRows?: () => string[];
  /** Told in words what happens, with the requests and the ends of runs indented. */
  log?: (line: string) => void;
  /** Breaks a rule of the engine. */
  broken?: ((mirror: Mirror) => Mirror) | undefined;
  /** What comes after the last step, instead of the runs in which nothing goes wrong. */
  ends?: ((ground: Ground) => Promise<void>) | undefined;
}

interface Stage extends Ground {
  story: Story;
  /** People and templates that somebody was told about. */
  listed: Set<string>;
  /** Changes whose outcome the last process left open. */
  opened: number;
  runs: number;
  requests: number;
  /** Nothing more can come of it. */
  over: boolean;
  /** A backup was put back. */
  restored: boolean;
}

/** A mirror whose fast runs compare people in memory, or in the tables. */
export function compared(mirror: Mirror, inMemory: boolean): Mirror {
  return { ...mirror, mostCompared: inMemory ? 1_000 : 0 };
}

/** In memory where the machine has such a place: elsewhere every commit waits for the disk. */
const shelf = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export async function simulate(story: Story, telling: Telling = {}): Promise<Told> {
  const folder = mkdtempSync(join(shelf, 'crm-mirror-'));
  const reached = createReached(story);
  const world = createWorld(story, reached);
  const unanswered = createUnanswered();
  const judgeAll = judgeTelling((rule) => reached.note('rule', rule));
  const judge: Judge = (rule, wrong) => {
    if (!stage.restored || restoredRules.has(rule)) judgeAll(rule, wrong);
  };
  const stage: Stage = {
    story,
    world,
    known: createKnown(world, { unanswered, judge }),
    unanswered,
    reached,
    path: join(folder, 'snapshot.sqlite'),
    last: { people: [], templates: [] },
    told: [],
    aheadMs: 0,
    found: [],
    log: telling.log ?? (() => undefined),
    broken: telling.broken ?? ((mirror) => compared(mirror, story.chance % 2 === 0)),
    listed: new Set(),
    opened: 0,
    runs: 0,
    requests: 0,
    keys: new Set(),
    over: false,
    restored: false,
  };
  try {
    const wrong = await tell(stage, telling.ends ?? (async () => settle(stage)));
    for (const row of telling.takeRows?.() ?? []) reached.note('row', row);
    const { runs, requests } = stage;
    const hours = world.clock.monotonic() / hour;
    return {
      wrong,
      hours,
      runs,
      requests,
      reached: reached.counts(),
      state: stateOf(world),
      stored: storedIn(stage.path),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tell(
  stage: Stage,
  ends: (ground: Ground) => Promise<void>,
): Promise<Error | undefined> {
  try {
    for (const step of stepsOf(stage.story)) {
      stage.log(inWords(step, stage.story));
      await take(stage, step);
      if (stage.over) return undefined;
    }
    await ends(stage);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function take(stage: Stage, step: Step): Promise<void> {
  const { world, known } = stage;
  if (step.is === 'act') {
    await world.clock.advance(1000);
    world.act(step.act);
    known.memories.notice();
  } else if (step.is === 'pause') await world.clock.advance(step.minutes * 60_000);
  else if (step.is === 'remap') world.remap();
  else if (step.is === 'jump') jump(stage, step.seconds, 'our clock jumps between runs');
  else if (step.is === 'loss') await lose(stage, 'loss');
  else if (step.is === 'backup') backUp(stage.path, world.clock.now() + stage.aheadMs);
  else if (step.is === 'restore') await lose(stage, 'restore');
  else if (step.is === 'approve' || step.is === 'reject') decideAbout(stage, step);
  else if (step.is === 'resolve') await resolveConflict(stage, step);
  else if (step.is === 'reset')
    await resetPerson(stage, addressNamed(step, stage.story.people.length));
  else if (step.is === 'forget')
    await forgetIn(stage, step, addressNamed(step, stage.story.people.length));
  else if (step.is === 'allow')
    await allowAgain(stage, addressNamed(step, stage.story.people.length));
  else if (step.plans) await goDry(stage, step);
  else await go(stage, step);
}

/**
 * The ledger stays. What a dead process had sent has arrived by then: nobody is so quick to delete
 * a snapshot.
 */
async function lose(stage: Stage, by: 'loss' | 'restore'): Promise<void> {
  const { world, known, path, reached } = stage;
  await world.clock.advance(2 * timeoutMs);
  if (!existsSync(by === 'loss' ? path : `${path}-backup`)) return;
  removeFiles(path);
  if (by === 'restore') copyFileSync(`${path}-backup`, path);
  known.audit.excuse(path);
  stage.restored ||= by === 'restore';
  stage.opened = 0;
  stage.keys.clear();
  known.absences.lose();
  for (const name of [
    'approvals',
    'standing',
    'canaries',
    'undone',
    'rejections',
    'statements',
  ] as const)
    known[name].lose();
  known.letThrough.clear();
  known.memories.lose(world.clock.monotonic(), by);
  reached.note('run', by === 'loss' ? 'the snapshot is lost' : 'a backup is put back');
}

/** As `backup` does it: the copy says when it was made. */
function backUp(path: string, at: number): void {
  if (!existsSync(path)) return;
  rmSync(`${path}-backup`, { force: true });
  const db = new Database(path);
  db.exec(`vacuum into '${path}-backup'`);
  db.close();
  const copy = new Database(`${path}-backup`);
  copy.prepare('insert or replace into meta values (?, ?)').run(copiedKey, String(at));
  copy.close();
}

async function forgetIn(stage: Stage, step: Forgetting, key: string) {
  const lived = await forgetOne(stage, step, key);
  stage.requests += lived.counts.left;
  stage.opened = openIn(readFiles(stage.path));
  return lived;
}

function openIn({ sent, unknown }: Traces): number {
  return sent.contact + sent.template + unknown;
}

/** One run, and what must hold after it; answers what it says of itself. */
async function go(stage: Stage, step: RunStep): Promise<Summary | undefined> {
  const { known, path, opened, reached } = stage;
  const { judge } = known;
  stage.keys.add(step.key);
  const lived = await liveOn(stage, step);
  const { done: summary, killed, outing, counts } = lived;
  stage.runs += 1;
  checkOuting(outing, counts, known);
  if (counts.brakedAt !== undefined) reached.note('run', 'the platform refuses more than 40 %');
  const files = readFiles(path);
  stage.opened = openIn(files);
  checkFiles(files, known, !killed && step);
  if (!killed) checkRequests({ ...counts, files, opened, step }, known);
  known.canaries.ended(outing, { files, summary });
  remember(stage, step, { ...lived, files });
  if (lived.strange) {
    giveUp(stage, step);
    return undefined;
  }
  if (!killed) judge('no run gives up', !summary && 'the run gave up');
  noteGuards(stage, lived);
  const listed = (summary?.problems ?? []).map(({ kind, key, part }) => `${kind} ${key} ${part}`);
  for (const one of [...listed, ...files.problems]) stage.listed.add(one);
  return summary;
}

/** Its key is of another organization, for all it can prove: somebody has to begin anew. */
function giveUp(stage: Stage, step: RunStep): void {
  checkProof(stage, step);
  stage.log('         its key is not proven: somebody has to begin anew');
  stage.reached.note('run', 'the key is not proven');
  stage.over = true;
}

function checkProof({ path, known, keys }: Stage, { key, meanwhile }: RunStep): void {
  // What it looked at may have been otherwise a moment later.
  if (meanwhile.length > 0) return;
  const why = whyProven(path, { witness: known.witness, keys: new Set([...keys, key]) });
  const wrong = why !== undefined && `its own organization was taken for another: ${why}`;
  known.judge('the same organization is not taken for another', wrong);
}

/** One more process, and what was found while it lived. */
async function liveOn(stage: Stage, step: RunStep): Promise<Lived> {
  await stage.world.clock.advance(1000);
  const lived = await live(stage, step);
  stage.requests += lived.counts.left;
  stage.log(`         ${ending(lived)}`);
  const [first] = stage.found;
  if (first) throw first;
  return lived;
}

/** What the process has learnt, as far as it has lived to write it down. */
function remember(
  stage: Stage,
  step: RunStep,
  { done: summary, killed, outing, files }: Lived & { files: Traces },
): void {
  const { memories, absences, standing, erasures, statements, rejections } = stage.known;
  const { people, templates, startedAt, answered } = outing;
  if (step.only !== 'templates') {
    rejections.read({ reading: people, witness: stage.known.witness });
    stage.known.approvals.read(people);
  }
  const current = files.held.filter((one) => one.current);
  // A run that is limited to some people ends no hold.
  const mode = step.chosen || outing.undoes ? 'fast' : step.mode;
  const stay = standing.ended({ mode, killed: !summary, approved: outing.approved }, current);
  if (stay) stage.known.judge('held changes stay held until they are approved', false);
  // A hold goes on under an address that this reading is the first to show.
  memories.read(people, templates);
  rememberStated(stage, outing, { files, summary });
  statements.read(people);
  stage.known.undone.read(people);
  stage.known.unmanaged.read(people);
  erasures.meet(people);
  memories.left(stage.world.clock.monotonic(), files);
  absences.ended({ ...outing, mode }, summary !== undefined && summary.certificate.source !== null);
  // What was marked as sent when it was killed counts as done, if the platform ever shows it.
  for (const { key, part, op } of killed ? files.open : []) {
    if (op !== 'delete') stage.unanswered.add(`${key} ${part} ${op === 'opt_out' ? op : 'opt_in'}`);
  }
  if (killed) for (const enrolment of answered) stage.unanswered.add(enrolment);
  else memories.answered(answered);
  if (killed) return;
  if (step.reading === 'whole')
    stage.last = { people: people.records, templates: templates.records };
  if (!summary) return;
  const ends = endingOf(summary, step, stage.known);
  if (ends === 'all' && step.only === undefined) {
    const isErased = (key: string): boolean => erasures.isOf(key) || erasures.unsettled().has(key);
    memories.conclude(people, { startedAt, endedAt: stage.world.clock.monotonic(), isErased });
    erasures.read(people);
  }
  if (ends === 'all' || ends === 'limited') checkForbidden(outing, files, stage.known);
  if (ends === 'all') {
    checkReleased(outing, files, stage.known);
    checkResolved(outing, files, stage.known);
    checkNotAsked(outing, { held: current, summary }, stage.known);
    statements.conclude(people);
    if (step.only !== 'templates') stage.known.unmanaged.conclude(outing, files, stage.known);
  }
  if (step.only !== 'templates')
    rejections.held(current, { reading: people, witness: stage.known.witness });
  endApprovals(stage, ends, { only: outing.only, named: summary.contacts.desired });
}

/** A plan: nothing is written, neither on the platform nor in the snapshot. */
async function goDry(stage: Stage, step: RunStep): Promise<Lived> {
  const { path, known } = stage;
  const before = contentOf(path);
  const lived = await liveOn(stage, step);
  const { outing, counts } = lived;
  checkOuting(outing, counts, known);
  known.judge('a plan changes nothing on the platform', counts.writes > 0 && 'a plan wrote on it');
  const isSame = contentOf(path) === before;
  known.judge('a plan changes nothing in the snapshot', !isSame && 'a plan wrote in the snapshot');
  if (lived.strange) checkProof(stage, step);
  return lived;
}

function ending({ done: summary, killed }: Lived): string {
  if (killed) return 'killed';
  if (!summary) return 'gave up';
  const { status, reasons, contacts, problems } = summary;
  const said = [...reasons, ...problems.map(({ key, reason }) => `${key}: ${reason}`)];
  const done = JSON.stringify(contacts.applied);
  return [`${status}, applied ${done}`, ...said].join('\n           ');
}

/**
 * Nothing goes wrong any more: after two runs there is nothing left to do, and everything is as the
 * CRM wants it. Where a platform refuses people one by one, a run stops after some of them, and the
 * next one goes on with the others.
 */
async function settle(stage: Stage): Promise<void> {
  const { world, story, known } = stage;
  stage.log('Nothing goes wrong any more.');
  const refuses = story.quirks.some((quirk) => quirk.startsWith('unknown-email'));
  // Five who are refused stop a channel for that run.
  const stops = refuses ? Math.ceil(story.people.length / 5) : 0;
  // With a canary, the slice comes first: of missing people, once they count as absent.
  const waits = story.canary ? 4 : 0;
  const slow = Math.max(isCrowd(story) || refuses ? 2 : 0, stops) + waits;
  stage.listed.clear();
  if (story.chance % 3 > 0) await forgetAgain(stage);
  for (let runs = 2 + slow; runs > 0; runs -= 1) {
    if (!(await goCalmly(stage))) return;
  }
  if (!(await outlastHolds(stage))) return;
  // The platform tells its time in whole seconds: who came within the same one may come later.
  await world.clock.advance(2000);
  const { done: summary, outing } = await goDry(stage, { ...calm, plans: true });
  known.judge('no run gives up', !summary && 'nothing goes wrong, and it gives up');
  if (!summary) return;
  checkQuiet(summary, outing, known);
  const files = readFiles(stage.path);
  const isOpen = files.sent.contact + files.sent.template + files.unknown + files.planned > 0;
  const open = isOpen && 'two calm runs later the journal is not closed';
  known.judge('in the end the journal is closed', open);
  // Where nothing could be read, nothing was listed.
  if (isEmpty(outing.people) && isEmpty(outing.templates)) return;
  const isListed = summary.certificate.platform === true;
  // Pages in changing order may hide the same contact in every pass.
  if (!isListed && story.quirks.includes('unsorted-ties')) return;
  const wrong = !isListed && 'nothing goes wrong, and the listing is not certified';
  known.judge('in the end the listing is certified', wrong);
  if (isEmpty(outing.people)) return;
  checkEnd(outing.people, known, {
    told: stage.listed,
    files,
    isLeaving: summary.contacts.held.delete > 0,
  });
  checkRecorded(files, known);
}

/** A stated opt-out is held for three days at most; what waits for it takes a run more. */
async function outlastHolds(stage: Stage): Promise<boolean> {
  const isHolding = (): boolean => readFiles(stage.path).standing.length > 0;
  for (let runs = 8; runs > 0 && isHolding(); runs -= 1) {
    if (!(await goCalmly(stage))) return false;
    if (!isHolding()) return goCalmly(stage);
  }
  return true;
}

/**
 * A run of which all can be expected; answers whether there was one. Pages in changing order may
 * hide the same contact in every pass: such a run leaves to the next what needs a whole listing.
 */
async function goCalmly(stage: Stage): Promise<boolean> {
  const { story, world } = stage;
  for (let tries = 10; tries > 0; tries -= 1) {
    // What was refused is tried again at least once a day.
    await world.clock.advance(25 * hour);
    // Or else it stays held.
    if (story.chance % 2 > 0) decideAbout(stage, approval);
    const summary = await go(stage, calm);
    if (stage.over) return false;
    const isPartial = summary?.certificate.platform === false;
    if (!isPartial || !story.quirks.includes('unsorted-ties')) return true;
  }
  return false;
}

/** What was stopped half-way is done again, and comes to its end. */
async function forgetAgain(stage: Stage): Promise<void> {
  for (const key of stage.known.erasures.unsettled()) {
    stage.log(`${key} is forgotten.`);
    const { done, strange } = await forgetIn(stage, forgetting(0), key);
    const failed = done?.failure ?? (!done && !strange && 'it threw');
    const wrong = failed !== false && `${key} cannot be forgotten: ${failed}`;
    if (!strange) stage.known.judge('partly forgotten people can be forgotten again', wrong);
  }
}
