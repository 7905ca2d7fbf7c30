/**
 * A mirror that compares people in memory, beside one that compares all of them in the tables. The
 * same happens to both, and both do and know the same after each run. A failure names its seed:
 * COMPARED_SEED repeats it, COMPARED_SEEDS plays so many from there.
 */
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markReset } from '../../../src/engine/observe/observe-platform.ts';
import { createStage, type Stage } from '../../support/engine/engine-stage.ts';
import { extent } from '../../support/extent.ts';
import { scratchFolder } from '../../support/waiting.ts';
import { storedIn } from '../../simulation/end-state.ts';

const from = process.env['COMPARED_SEED'];
const first = Number(from ?? 20_260_101);
const seeds = Number(process.env['COMPARED_SEEDS'] ?? (from === undefined ? extent(3, 100) : 1));

const wish = fc.constantFrom('yes', 'yes', 'yes', 'no', '', 'perhaps');
const rarely = fc.constantFrom('', '', '', '', '', '', '', 'yes');
const settled = ['p10@example.com', 'p11@example.com', 'p12@example.com'];
/** A record of the CRM at one place: few ids and addresses, so that records share them. */
const edit = fc.record({
  at: fc.nat({ max: 4 }),
  record: fc.option(
    fc.record({
      id: fc.constantFrom('1', '2', '10', '11', '12', '13', ''),
      email: fc.constantFrom('ann@example.com', 'P10@example.com', ...settled, 'аня', ''),
      ch_news: wish,
      ch_product: wish,
      deleted: rarely,
      unsubscribed: rarely,
    }),
    { freq: 4 },
  ),
});
const days = fc.array(
  fc.record({
    edits: fc.array(edit, { maxLength: 3 }),
    mode: fc.constantFrom('fast', 'fast', 'fast', 'full'),
    certified: fc.constantFrom(true, true, true, false),
    plans: fc.boolean(),
    reset: fc.constantFrom(undefined, undefined, 'ann@example.com', 'p10@example.com'),
    hours: fc.constantFrom(1, 30),
  }),
  { minLength: 1, maxLength: 4 },
);

/** People about whom nothing is news, before and after those records. */
const others = Array.from({ length: 5 }, (_, nth) => ({
  id: `${10 + nth}`,
  email: `p${10 + nth}@example.com`,
  ch_news: nth === 0 ? 'no' : 'yes',
  ch_product: '',
}));

const quiet: Day = {
  edits: [],
  mode: 'full',
  certified: true,
  plans: false,
  reset: undefined,
  hours: 1,
};

interface Both {
  stage: Stage;
  path: string;
  places: Map<number, Record<string, string>>;
}

function stageOf(mostCompared: number): Both {
  const path = join(scratchFolder(), 'snapshot.sqlite');
  const guards = { delete: { percent: 100, floor: 99 }, opt_in: { percent: 100, floor: 2 } };
  const policy = { absent: 'opt_out', deletes: 'created' } as const;
  const absence = { absentReadings: 2, absentForMs: 3_600_000 };
  const stage = createStage({ path, guards, policy, absence, mostCompared });
  return { stage, path, places: new Map() };
}

type Day = (typeof days extends fc.Arbitrary<infer All extends readonly unknown[]>
  ? All
  : never)[number];

/** Returns what the runs of a day did, and what is stored after them. */
async function live({ stage, path, places }: Both, day: Day) {
  const { edits, mode, certified, plans, reset, hours } = day;
  for (const { at, record } of edits) {
    if (record) places.set(at, record);
    else places.delete(at);
  }
  stage.people = [...others.slice(2), ...places.values(), ...others.slice(0, 2)];
  const reading = JSON.stringify(stage.people);
  const why = { why: 'it was cut', fix: 'export it again' };
  stage.certificate = {
    reading,
    ...(certified ? { complete: true } : { complete: false, ...why }),
  };
  const { snapshot } = stage;
  if (reset !== undefined) snapshot.transaction(() => markReset(snapshot, reset));
  const planned = plans ? await stage.sync({ mode, writes: false }) : undefined;
  const summary = await stage.sync({ mode });
  await stage.clock.advance(hours * 3_600_000);
  return { planned, summary, stored: storedIn(path), writes: stage.writes() };
}

test.each(Array.from({ length: seeds }, (_, nth) => first + nth))('seed %i', async (seed) => {
  const playing = fc.asyncProperty(days, async (all) => {
    const [inMemory, inTables] = [stageOf(1_000), stageOf(0)];
    try {
      for (const day of [quiet, ...all])
        expect(await live(inMemory, day)).toEqual(await live(inTables, day));
    } finally {
      inMemory.stage.close();
      inTables.stage.close();
    }
  });
  await fc.assert(playing, { seed, numRuns: 8 });
});
