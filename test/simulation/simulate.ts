/** Tells a story: the whole engine and the whole platform, in one process and in virtual time. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Summary } from '../../src/plan/summary.ts';
import type { Mirror } from '../../src/sync/mirror.ts';
import {
  checkEnd,
  checkFiles,
  checkRecorded,
  checkRequests,
  fallbackOf,
  Wrong,
  type Known,
  type Outing,
} from './checkers.ts';
import { createAbsences } from './absence.ts';
import type { Reading } from './crm.ts';
import { readFiles } from './files.ts';
import { createMemories } from './memory.ts';
import { live, type Ground, type Lived } from './process.ts';
import { calm, stepsOf, type RunStep, type Step, type Story } from './story.ts';
import { whyProven } from './strange.ts';
import { createUnanswered } from './unanswered.ts';
import { inWords } from './words.ts';
import { createWorld, hour } from './world.ts';

export interface Told {
  /** What was wrong, if anything was. */
  wrong: Error | undefined;
  /** Virtual hours that passed. */
  hours: number;
  runs: number;
  requests: number;
}

export interface Telling {
  /** Told in words what happens, with the requests and the ends of runs indented. */
  log?: (line: string) => void;
  /** Breaks a rule of the engine. */
  broken?: ((mirror: Mirror) => Mirror) | undefined;
}

interface Stage extends Ground {
  story: Story;
  /** People and templates that somebody was told about. */
  told: Set<string>;
  /** Changes whose outcome the last process left open. */
  opened: number;
  runs: number;
  requests: number;
  /** Used so far. */
  keys: Set<RunStep['key']>;
  /** Nothing more can come of it. */
  over: boolean;
}

/** In memory where the machine has such a place: elsewhere every commit waits for the disk. */
const shelf = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export async function simulate(story: Story, telling: Telling = {}): Promise<Told> {
  const folder = mkdtempSync(join(shelf, 'crm-mirror-'));
  const world = createWorld(story);
  const stage: Stage = {
    story,
    world,
    absences: createAbsences(),
    memories: createMemories(world.witness, fallbackOf(story)),
    unanswered: createUnanswered(),
    unheard: new Set(),
    path: join(folder, 'snapshot.sqlite'),
    last: { people: [], templates: [] },
    aheadMs: 0,
    found: [],
    log: telling.log ?? (() => undefined),
    broken: telling.broken ?? ((mirror) => mirror),
    told: new Set(),
    opened: 0,
    runs: 0,
    requests: 0,
    keys: new Set(),
    over: false,
  };
  try {
    const wrong = await tell(stage);
    const { runs, requests } = stage;
    return { wrong, hours: world.clock.monotonic() / hour, runs, requests };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tell(stage: Stage): Promise<Error | undefined> {
  try {
    for (const step of stepsOf(stage.story)) {
      stage.log(inWords(step, stage.story));
      await take(stage, step);
      if (stage.over) return undefined;
    }
    await settle(stage);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function take(stage: Stage, step: Step): Promise<void> {
  const { world, memories } = stage;
  if (step.is === 'act') {
    await world.clock.advance(1000);
    world.act(step.act);
    memories.notice();
  } else if (step.is === 'pause') await world.clock.advance(step.minutes * 60_000);
  else await go(stage, step);
}

/** One run, and what must hold after it. */
async function go(stage: Stage, step: RunStep): Promise<void> {
  const { world, memories, absences, path } = stage;
  await world.clock.advance(1000);
  stage.runs += 1;
  const { opened } = stage;
  stage.keys.add(step.key);
  const lived = await live(stage, step);
  const { summary, outing, counts } = lived;
  stage.requests += counts.left;
  memories.read(outing.people, outing.templates);
  absences.ended(outing, summary !== undefined && summary.certificate.source !== null);
  const known = knownOf(stage);
  stage.log(`         ${ending(lived)}`);
  const [first] = stage.found;
  if (first) throw first;
  const files = readFiles(path);
  stage.opened = files.sent + files.unknown;
  checkFiles(files, known, !lived.killed);
  if (!lived.killed) checkRequests({ ...counts, files, opened, step }, known);
  if (step.reading === 'whole' && !lived.killed) {
    stage.last = { people: outing.people.records, templates: outing.templates.records };
  }
  // What a killed process has heard may not be written down.
  if (lived.killed) for (const enrolment of outing.heard) stage.unheard.add(enrolment);
  else memories.heard(outing.heard);
  if (lived.strange) return giveUp(stage, step);
  if (!lived.killed && !summary) throw new Wrong('the run gave up');
  const listed = (summary?.problems ?? []).map(({ kind, key, part }) => `${kind} ${key} ${part}`);
  for (const one of [...listed, ...files.problems]) stage.told.add(one);
  if (step.mode === 'full' && summary && isWhole(summary)) {
    memories.conclude(outing.people, outing.startedAt);
  }
}

function giveUp(stage: Stage, { meanwhile }: RunStep): void {
  const why = whyProven(stage.path, { witness: stage.world.witness, keys: stage.keys });
  // What it looked at may have been otherwise a moment later.
  if (why !== undefined && meanwhile.length === 0)
    throw new Wrong(`its own organization was taken for another: ${why}`);
  stage.log('         its key is not proven: somebody has to begin anew');
  stage.over = true;
}

function knownOf({ story, world: { clock, witness }, memories, absences, unheard }: Stage): Known {
  return { story, clock, witness, memories, absences, unheard };
}

function isWhole({ status, reasons, certificate }: Summary): boolean {
  const listed = certificate.source === true && certificate.platform === true;
  return listed && reasons.length === 0 && status !== 'interrupted';
}

function ending({ summary, killed }: Lived): string {
  if (killed) return 'killed';
  if (!summary) return 'gave up';
  const { status, reasons, contacts, problems } = summary;
  const said = [...reasons, ...problems.map(({ key, reason }) => `${key}: ${reason}`)];
  const done = JSON.stringify(contacts.applied);
  return [`${status}, applied ${done}`, ...said].join('\n           ');
}

/**
 * Nothing goes wrong any more: after two runs there is nothing left to do, and everything is as the
 * CRM wants it. Where a platform refuses people one by one, a channel stops after five of them, and
 * the next run goes on with the others.
 */
async function settle(stage: Stage): Promise<void> {
  const { world, story } = stage;
  stage.log('Nothing goes wrong any more.');
  const slow = story.quirks.some((quirk) => quirk.startsWith('unknown-email'));
  stage.told.clear();
  for (let runs = slow ? 4 : 2; runs > 0 && !stage.over; runs -= 1) await go(stage, calm);
  if (stage.over) return;
  // The platform tells its time in whole seconds: who came within the same one may come later.
  await world.clock.advance(2000);
  const { summary, outing } = await live(stage, calm, false);
  const [late] = stage.found;
  if (late) throw late;
  if (!summary) throw new Wrong('nothing goes wrong, and it gives up');
  checkQuiet(summary, outing);
  const files = readFiles(stage.path);
  if (files.sent + files.unknown + files.planned > 0)
    throw new Wrong('two calm runs later the journal is not closed');
  // Where nothing could be read, nothing was listed.
  if (isEmpty(outing.people) && isEmpty(outing.templates)) return;
  if (summary.certificate.platform !== true) {
    // Pages in changing order may hide the same contact in every pass.
    if (story.quirks.includes('unsorted-ties')) return;
    throw new Wrong('nothing goes wrong, and the listing is not certified');
  }
  if (isEmpty(outing.people)) return;
  const known = knownOf(stage);
  checkEnd(outing.people, known, stage.told);
  checkRecorded(files, known);
}

/** An empty source is taken for a failed export: its kind is left out, and the run fails. */
function checkQuiet({ contacts, templates, reasons }: Summary, outing: Outing): void {
  const changes = [
    ...(isEmpty(outing.people) ? [] : Object.entries(contacts.changes)),
    ...(isEmpty(outing.templates) ? [] : Object.entries(templates.changes)),
  ];
  // A guard may hold them for as long as nobody approves.
  const held = contacts.held.delete > 0 ? ['delete', 'opt_out'] : [];
  const left = changes
    .filter(([op, n]) => n > 0 && op !== 'adopt' && !held.includes(op))
    .map(([op, n]) => `${n} ${op}`);
  if (left.length > 0) throw new Wrong(`two calm runs later still to do: ${left.join(', ')}`);
  const failing = reasons.filter((reason) => !/source of \w+s is empty/.test(reason));
  if (failing.length > 0) throw new Wrong(`two calm runs later still failing: ${failing.join()}`);
}

function isEmpty({ records }: Reading): boolean {
  return records.length === 0;
}
