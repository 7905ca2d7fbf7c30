/**
 * The engine converges under the specification, under every quirk alone and under all pairs of
 * quirks: first in peace, then with faults in the first rounds. One clean run, and the next one
 * writes nothing; everybody is as the CRM wants, or somebody is told why not.
 */
import {
  keyOf,
  arrangeLetters,
  letter,
  unlikeLetters,
  arrange,
  checkWrites,
  event,
  happen,
  oursOf,
  person,
  standings,
  wishesOf,
} from '../support/engine/sample-people.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { algorithms } from '../../src/emulator/limits/route-limits.ts';
import { quirks } from '../../src/emulator/quirks/quirks.ts';
import type { Summary } from '../../src/engine/report/run-summary.ts';
import { createStage, type Stage, type StageOptions } from '../support/engine/engine-stage.ts';
import { playsDraw, sampled } from '../support/extent.ts';

/** Every quirk with every value it takes. */
const variants = quirks.flatMap(({ name, values }) =>
  values ? values.map((value) => `${name}=${value}`) : [name],
);
const nameOf = (variant: string): string => variant.split('=')[0] ?? '';

/**
 * What a quirk makes impossible, and nothing else may be refused:
 *   no-flip         a subscription that exists is not changed
 *   unknown-email   nobody is made; after five of them the channel stops, and says so
 */
const refuses: Record<string, RegExp> = {
  'no-flip': /the platform does not change an existing subscription/,
  'unknown-email': /Contact not found|without a reason/,
};
const stops = /answered 404 to 5 people|refused \d+ of \d+ changes|changes were not sent/;

/** A limit that is never reached: what is stuck once it is would never end. */
const endless = ['*=1000000/1'];

const storm = [
  '500=0.06',
  '500-after=0.06',
  '429=0.05',
  'reset-before=0.04',
  'reset-after=0.06',
  'timeout-before=0.03',
  'timeout-after=0.05',
  'garbage=0.05',
  'half=0.04',
  'slow=0.1',
];

const policies: StageOptions['policy'][] = [
  {},
  { missing: 'recreate', templates: 'overwrite', absentTemplates: 'archive' },
];

interface Story {
  played: readonly string[];
  seed: number;
  faults: boolean;
}

async function tell({ played, seed, faults }: Story): Promise<void> {
  const [people, letters, events] = drawn(seed);
  const algorithm = algorithms[seed % algorithms.length]?.name;
  const stage = createStage({
    seed,
    policy: policies[seed % policies.length] ?? {},
    limits: played.includes('retry-after-stuck') ? endless : ['*=3/5'],
    platform: { quirks: played, algorithm },
  });
  arrange(stage, people);
  arrangeLetters(stage, letters);
  const told = new Set<string>();
  for (const now of [[], events]) {
    for (const one of now) happen(stage, one, people.length);
    if (stage.people.length === 0) break;
    if (faults) await weather(stage, told);
    await settle(stage, played, told);
    check(stage, played, told);
  }
  stage.close();
}

function drawn(seed: number) {
  const world = fc.tuple(
    fc.array(person, { minLength: 5, maxLength: 9 }),
    fc.array(letter, { minLength: 2, maxLength: 4 }),
    fc.array(event, { minLength: 2, maxLength: 5 }),
  );
  const [one] = fc.sample(world, { numRuns: 1, seed });
  if (!one) throw new Error('no world');
  return one;
}

/** A full and a fast run in which much goes wrong; nobody is wronged by it. */
async function weather(stage: Stage, told: Set<string>): Promise<void> {
  stage.emulator.fail(storm);
  for (const mode of ['full', 'fast'] as const) {
    const before = standings(stage);
    const ours = oursOf(stage);
    listen(await stage.sync({ mode }), told);
    checkWrites(stage, before, ours);
  }
  stage.emulator.fail([]);
}

/** One run settles everything; the one after it writes nothing. */
async function settle(stage: Stage, played: readonly string[], told: Set<string>): Promise<void> {
  const strangers = played.some((variant) => nameOf(variant) === 'unknown-email');
  // A channel stops after five people who are not made: the next run goes on with the others.
  for (let rounds = strangers ? 3 : 1; rounds > 0; rounds -= 1) {
    const before = standings(stage);
    const ours = oursOf(stage);
    const summary = await stage.sync();
    checkWrites(stage, before, ours);
    listen(summary, told);
    const unforeseen = summary.reasons.filter((reason) => !(strangers && stops.test(reason)));
    expect(unforeseen).toEqual([]);
    expect(wronglyRefused(summary, played)).toEqual([]);
  }
  const again = await stage.sync();
  listen(again, told);
  expect(stage.writes()).toEqual([]);
  expect(again.reasons).toEqual([]);
}

/** Refusals of people that no quirk explains. */
function wronglyRefused({ problems }: Summary, played: readonly string[]): string[] {
  const explains = (reason: string) => played.some((one) => refuses[nameOf(one)]?.test(reason));
  return problems
    .filter((problem) => problem.kind === 'contact' && problem.class === 'rejected')
    .map(({ reason }) => reason)
    .filter((reason) => !explains(reason));
}

function listen(summary: Summary, told: Set<string>): void {
  for (const { kind, key } of summary.problems) told.add(`${kind} ${key}`);
}

/** Everybody and everything is as the CRM wants it, or was named. */
function check(stage: Stage, played: readonly string[], told: ReadonlySet<string>): void {
  const fallback = played.find((variant) => nameOf(variant) === 'all-channels')?.split('=')[1];
  const contacts = stage.emulator.world.contacts();
  for (const { address, channel, wish } of wishesOf(stage)) {
    const theirs = contacts.filter(({ email }) => keyOf(email) === address);
    const shown = theirs.map(
      (contact) => contact.channels.find(({ id }) => id === channel)?.subscription ?? fallback,
    );
    const isSo = wish === 'opt_in' ? shown.includes('opt_in') : !shown.includes('opt_in');
    if (wish === undefined || isSo) continue;
    const canRefuse = wish === 'opt_in' || played.includes('no-flip');
    expect(canRefuse && told.has(`contact ${address}`), `${address} ${channel} ${wish}`).toBe(true);
  }
  for (const key of unlikeLetters(stage)) expect(told).toContain(`template ${key}`);
}

/** Names the story that failed, so that it can be told alone. */
async function tellAll(stories: readonly Story[]): Promise<void> {
  for (const story of stories) {
    try {
      await tell(story);
    } catch (error) {
      throw new Error(`in ${JSON.stringify(story)}`, { cause: error });
    }
  }
}

const numbered = variants.map((variant, at) => [variant, at] as const);

describe.each([false, true])('with faults first: %s', (faults) => {
  test.each(sampled([0, 1, 2, 3, 4], 5))(
    'converges under the specification, world %i',
    async (world) => {
      const seeds = Array.from({ length: 5 }, (_, at) => world * 5 + at + 1);
      await tellAll(seeds.map((seed) => ({ played: [], seed, faults })));
    },
  );

  test.each(sampled(numbered, playsDraw ? 3 : 6))('converges under %s', async (one, at) => {
    const alone = [1, 2, 3].map((nth) => ({ played: [one], seed: 1000 * nth + at, faults }));
    const others = variants.slice(at + 1).filter((other) => nameOf(other) !== nameOf(one));
    const pairs = others.map((other, nth) => ({
      played: [one, other],
      seed: 10_000 + 100 * at + nth,
      faults,
    }));
    // A third of the pairs: each variant meets the others under other seeds, too.
    const some = pairs.filter((_, nth) => (nth + at) % 3 === 0);
    await tellAll(sampled([...alone, ...some], 40));
  });
});
