/** A rehearsal in a simulated world, and the run that it foretells. */
import { createHash } from 'node:crypto';
import { createFaults } from '../../../src/emulator/faults/faults.ts';
import { type Emulator, routeOf } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { isExpected } from '../../../src/domain/errors.ts';
import { memoryWithoutFile, openMemory, readMemory } from '../../../src/store/memory/memory.ts';
import { boundMemory } from '../../../src/engine/context/do-not-contact-binding.ts';
import { factsIn } from '../../../src/engine/context/platform-knowledge.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { run } from '../../../src/engine/run.ts';
import type { Platform } from '../../../src/platform/platform.ts';
import {
  asRead,
  fillEmulator,
  type PlatformView,
  watched,
} from '../../../src/trials/rehearsal/platform-view.ts';
import {
  onlyReads,
  sendInProcess,
  copyForRehearsal,
} from '../../../src/trials/rehearsal/observe-original.ts';
import type { VirtualClock } from '../../../src/trials/rehearsal/virtual-clock.ts';
import { lookInto, openForRun, openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Source } from '../../../src/sources/source.ts';
import { virtualClock } from '../../support/waiting.ts';
import { channels, mirrorOf, type Parts } from '../../support/engine/engine-stage.ts';
import { fallbackOf, type Story } from '../story/story.ts';
import type { CrmRecord } from './crm.ts';
import { timeoutMs } from './faults.ts';
import { configuredIn, type Ground } from './process.ts';
import { placeOf, readFiles } from './snapshot-files.ts';
import { hour } from './world.ts';

/** What holds when a run has ended. */
export interface Ended {
  summary: Pick<Summary, 'status' | 'plan' | 'contacts' | 'templates'>;
  /** What the platform shows of people and templates, whatever their ids and times. */
  people: string[];
  templates: string[];
  recorded: string[];
}

/** The same, and whether faults have kept it from reading a part. */
type Led = Ended & { isCut: boolean };

/** Something that a run is made of, in the world or in a rehearsal of it. */
interface Stand {
  clock: VirtualClock;
  emulator: Emulator;
  path: string;
  platformAs?(platform: Platform): Platform;
}

const latencyMs = 20;
const never = new AbortController().signal;

/**
 * Rehearses a run and then makes it, both with the same seed and faults. Undefined if a plan
 * already fails: then there is no rehearsal. Undefined, too, if faults kept one of the two from
 * reading what the other has read: a request that waits for the limit moves those after it, so that
 * the same faults come upon others.
 */
export async function rehearseAndRun(
  ground: Ground,
  { seed, faults }: { seed: number; faults: readonly string[] },
): Promise<{ foretold: Ended; real: Ended } | undefined> {
  const { world, path } = ground;
  // What was refused is tried again at least once a day, and no window is open any more.
  await world.clock.advance(25 * hour);
  const rehearsed = await prepare(ground);
  if (!rehearsed) return undefined;
  try {
    const { isCut, ...foretold } = await lead(ground, { seed, faults, ...rehearsed });
    const { clock, emulator } = world;
    const { isCut: isReal, ...real } = await lead(ground, { seed, faults, clock, emulator, path });
    return faults.length > 0 && isCut !== isReal ? undefined : { foretold, real };
  } finally {
    rehearsed.remove();
  }
}

/** Copies the files, reads the platform, and fills an emulator with it. */
async function prepare(ground: Ground): Promise<(Stand & { remove(): void }) | undefined> {
  const { world, path } = ground;
  const { story, clock } = world;
  const view: PlatformView = { contacts: new Map(), templates: new Map() };
  const snapshot = lookInto(path) ?? openSnapshot(path, { inMemory: true });
  const place = placeOf(path);
  const memory = readMemory(place, boundMemory(snapshot.meta)) ?? memoryWithoutFile();
  const platformAs = (platform: Platform) => watched(platform, view);
  const { send } = onlyReads(sendInProcess(world.emulator.receive, clock, latencyMs, timeoutMs));
  const config = { snapshot: path, memory: place };
  const copy = await copyForRehearsal({ config, snapshot }, never);
  try {
    const mirror = mirrorOf({
      ...partsIn(ground, { clock, seed: 0 }),
      send,
      snapshot,
      memory,
      platformAs,
    });
    const { status } = await clock.run(run(mirror, { ...full, writes: false }));
    if (status === 'failed') {
      copy.remove();
      return undefined;
    }
  } catch (error) {
    copy.remove();
    if (isExpected(error) && error.message.includes('is not proven')) return undefined;
    throw error;
  } finally {
    memory.close();
    snapshot.close();
  }
  // What was read has used up a part of the limits, which makes no difference later.
  await clock.advance(hour);
  const virtual = virtualClock(clock.now());
  const ahead = story.platformAhead * hour;
  const emulator = fillEmulator(view, {
    clock: { now: () => Math.floor(virtual.now()) + ahead, monotonic: virtual.monotonic },
    random: seeded(story.chance + 1),
    apiKey: 'key',
    channels: channels.map((id) => ({ id, name: id })),
    facts: factsInCopy(copy.snapshot),
    limits: [limitIn(ground)],
    algorithm: story.algorithm,
    quirks: story.quirks,
    faults: [],
  });
  return {
    clock: { ...virtual, now: () => Math.floor(virtual.now()) },
    emulator,
    path: copy.snapshot,
    platformAs: (platform) => asRead(platform, view),
    remove: copy.remove,
  };
}

const full = {
  mode: 'full' as const,
  only: undefined,
  progress: () => undefined,
  stop: never,
  abort: never,
};

/** As the world has it. */
function limitIn({ world: { story } }: Ground): string {
  return story.quirks.includes('retry-after-stuck') ? '*=1000000/1' : story.limit;
}

function factsInCopy(path: string) {
  const snapshot = lookInto(path);
  try {
    return snapshot ? factsIn(snapshot) : { defaults: {} };
  } finally {
    snapshot?.close();
  }
}

/** A run, and what holds after it. */
async function lead(
  ground: Ground,
  { seed, faults, ...stand }: Stand & { seed: number; faults: readonly string[] },
): Promise<Led> {
  const { clock, emulator, path, platformAs } = stand;
  const { story } = ground.world;
  const { snapshot } = openForRun(path, { at: clock.now(), admit: () => undefined });
  snapshot.fence();
  const memory = openMemory(placeOf(path), {
    known: boundMemory(snapshot.meta),
    acceptLost: false,
    randomHex: (bytes) => '7f'.repeat(bytes),
  });
  const { handle } = emulator;
  const faulty = createFaults(faults, seeded(seed));
  const receive: Emulator['receive'] = (request) =>
    faulty.receive(
      routeOf(request),
      () => handle(request),
      () => undefined,
    );
  const send = sendInProcess(receive, clock, latencyMs, timeoutMs);
  const parts = { ...partsIn(ground, { clock, seed }), send, snapshot, memory };
  try {
    const mirror = mirrorOf({ ...parts, ...(platformAs && { platformAs }) });
    const { status, plan, contacts, templates, reasonCodes } = await clock.run(
      run(mirror, { ...full, writes: true }),
    );
    const isCut = reasonCodes.includes('source-left-out');
    return { summary: { status, plan, contacts, templates }, isCut, ...shownBy(stand, story) };
  } finally {
    memory.close();
    snapshot.close();
  }
}

function partsIn(
  { world: { story, people, templates } }: Ground,
  { clock, seed }: { clock: VirtualClock; seed: number },
): Omit<Parts, 'send' | 'snapshot' | 'memory'> {
  return {
    ...configuredIn(story),
    clock,
    random: seeded(seed),
    contacts: sourceOf(people),
    templates: sourceOf(templates),
  };
}

function sourceOf(records: readonly CrmRecord[]): Source {
  const reading = createHash('sha1').update(JSON.stringify(records)).digest('hex');
  return {
    async *read() {
      yield records.map((value, at) => ({ where: `record ${at + 1}`, value }));
      return { complete: true, reading };
    },
    still: (other) => other === reading,
  };
}

function shownBy({ emulator: { world }, path }: Stand, story: Story): Omit<Ended, 'summary'> {
  const people = world.contacts().map(({ email, status, channels: own, suppressionReason }) => {
    // A rehearsal cannot tell a default from a subscription of one's own.
    const shown = channels.map((id) => own.find((one) => one.id === id)?.subscription);
    const subscriptions = shown.map((is) => is ?? fallbackOf(story) ?? 'none');
    return JSON.stringify([email, status, suppressionReason, ...subscriptions]);
  });
  const templates = world
    .templates()
    .map(({ name, subject, status }) => `${name} ${subject} ${status}`);
  const recorded = readFiles(path).recorded.map(({ key, channel, is, by }) =>
    [key, channel, is, by].join(' '),
  );
  return {
    people: people.toSorted(),
    templates: templates.toSorted(),
    recorded: recorded.toSorted(),
  };
}
