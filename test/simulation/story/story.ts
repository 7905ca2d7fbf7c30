/**
 * What may happen in a simulated world, drawn from one seed. Everything here is plain data that
 * fast-check can draw and shrink: the same story is always the same world.
 */
import fc from 'fast-check';
import type { CanaryPolicy } from '../../../src/domain/guards/canary.ts';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { quirks } from '../../../src/emulator/quirks/quirks.ts';
import { letter, person } from '../../support/engine/sample-people.ts';
import { act, allActs, who } from './actions.ts';
import { pick } from './random-draws.ts';
import { plots, type Plot } from './rare-sequences.ts';
import { accident, besides, dispute, farewell, misexport, release } from './story-endings.ts';
import { calm, decide, faults, forgetting, readings, step, type Step } from './steps.ts';

/** Every quirk with every value it takes. */
const variants = quirks.flatMap(({ name, values }) =>
  values ? values.map((value) => `${name}=${value}`) : [name],
);
const nameOf = (variant: string): string => variant.split('=')[0] ?? '';

/** Often none, else a few or all at once, each with one value. */
const played = fc.oneof(
  { weight: 2, arbitrary: fc.constant<string[]>([]) },
  {
    weight: 3,
    arbitrary: fc.uniqueArray(fc.constantFrom(...variants), { maxLength: 3, selector: nameOf }),
  },
  {
    weight: 1,
    arbitrary: fc.uniqueArray(fc.constantFrom(...variants), {
      minLength: 8,
      maxLength: 24,
      selector: nameOf,
      size: 'max',
    }),
  },
);

/** What is true of a whole world; the policies are those of the configuration. */
const settings = {
  algorithm: algorithms.map(({ name }) => name),
  /** Requests per seconds, of each route. */
  limit: ['*=1000000/1', '*=3/5', 'contacts.enrol=1/400'],
  /** Hours by which the platform's clock is ahead of ours. */
  platformAhead: [0, 0, -9, 5],
  missing: ['respect', 'recreate'],
  resubscribe: ['never', 'newer'],
  templates: ['keep', 'overwrite'],
  absentTemplates: ['keep', 'archive'],
  absent: ['keep', 'opt_out'],
  deletes: ['off', 'created', 'owned'],
  /** How many people are deleted or opted out for absence in one run, unless somebody approves. */
  floor: [10, 10, 0, 1],
  /** How many are brought in in one run, once a first load has ended. */
  optIns: [100, 100, 100, 100, 0, 1],
  /** Whether the CRM tells what changed. */
  tells: [false, true],
  /** Hours from the opt-out of people who are missing to their deletion. */
  deleteAfter: [0, 0, 30],
  /** Which time the platform tells where it is read; right in runs in which nothing goes wrong. */
  dates: ['right', 'right', 'wrong', 'none'],
  /** How many stated opt-outs leave in one run. */
  optOuts: [20, 20, 20, 0, 1],
  /** How many templates are changed in one run. */
  letterFloor: [3, 3, 0],
} as const;
const settingNames = [
  'algorithm',
  'limit',
  'platformAhead',
  'missing',
  'resubscribe',
  'templates',
  'absentTemplates',
  'absent',
  'deletes',
  'floor',
  'optIns',
  'tells',
  'deleteAfter',
  'dates',
  'optOuts',
  'letterFloor',
] as const;

/** All that a story may choose from, as what it comes to is counted. */
export const choices = {
  quirks: variants,
  faults,
  acts: allActs,
  events: [
    'full',
    'fast',
    ...readings.map((reading) => `the CRM is read ${reading}`),
    'the key may only read',
    'the key may do nothing',
    'the key is refused in mid-run',
    'plan only',
    'only contacts',
    'only templates',
    'other clients use up the limit',
    'something changes during the run',
    'killed',
    'asked to stop',
    'a second process is started',
    'our clock jumps',
    'our clock jumps between runs',
    'the snapshot is lost',
    'more than seven people',
    'the platform refuses more than 40 %',
    'without latency',
    'somebody is deleted',
    'a guard holds removals',
    'a guard holds opt-ins',
    'a guard holds stated opt-outs',
    'a guard holds templates',
    'a hold ends by itself',
    'something is approved',
    'something is rejected',
    'a part is approved',
    'a part is rejected',
    'a rejection is taken back',
    'a conflict is resolved as an opt-in',
    'a conflict is resolved as an opt-out',
    'what is recorded of somebody is reset',
    'limited to some people',
    'an approval releases something',
    'an approval releases a removal',
    'an approval releases an opt-out',
    'an approval releases a template',
    'a change is held besides the approved ones',
    'an approval ends with a full run',
    'an approval expires',
    'somebody is forgotten',
    'somebody on the platform is forgotten',
    'somebody is partly forgotten',
    'the process is killed while somebody is forgotten',
    'a forgotten person is allowed again',
    'a person forgotten under another address is allowed again',
    'the key is not proven',
    'the CRM lists what changed',
    'an unsubscribe is reported to the CRM',
    'a creation is read back',
    'an opt-in has no answer where defaults are shown',
  ],
  settings: settingNames.flatMap((name) => {
    const values: readonly unknown[] = settings[name];
    return [...new Set(values)].map((value) => `${name} ${value}`);
  }),
};

export function settingsOf(one: Story): string[] {
  return settingNames.map((name) => `${name} ${one[name]}`);
}

/** A plot about somebody, each line of it followed by a run in which mostly nothing goes wrong. */
const plot = fc
  .record({
    who,
    lines: fc.constantFrom<Plot>(...plots),
    runs: fc.array(
      fc.oneof({ weight: 5, arbitrary: step.calm }, { weight: 1, arbitrary: step.run }),
      { minLength: 4, maxLength: 4 },
    ),
  })
  .map(({ who: target, lines, runs }): Step[] =>
    lines.flatMap((line, at) => {
      const drawn = runs[at] ?? calm;
      return [
        ...line.flatMap((one) => stepsFor(one, target)),
        line.includes('key') ? { ...drawn, key: 'read' } : drawn,
      ];
    }),
  );

function stepsFor(one: Plot[number][number], target: number): Step[] {
  if (one === 'key') return [];
  if (one === 'loss') return [{ is: 'loss' }];
  if (one === 'forget') return [forgetting(target)];
  if (one === 'allow' || one === 'allow moved')
    return [{ is: 'allow', who: target, moved: one === 'allow moved' }];
  return [{ is: 'act', act: { ...one, who: target } }];
}

const steps = fc
  .array(
    fc.oneof(
      { weight: 30, arbitrary: step.run.map((one): Step[] => [one]) },
      { weight: 30, arbitrary: act.map((one): Step[] => [{ is: 'act', act: one }]) },
      { weight: 7, arbitrary: step.pause.map((one): Step[] => [one]) },
      { weight: 2, arbitrary: step.jump.map((one): Step[] => [one]) },
      { weight: 1, arbitrary: step.loss.map((one): Step[] => [one]) },
      { weight: 3, arbitrary: step.approve.map((one): Step[] => [one]) },
      { weight: 2, arbitrary: step.forget.map((one): Step[] => [one]) },
      { weight: 2, arbitrary: step.allow.map((one): Step[] => [one]) },
      { weight: 5, arbitrary: plot },
    ),
    { minLength: 1, maxLength: 12, size: '+1' },
  )
  .map((all) => all.flat());

type Person = ReturnType<typeof personRefused> extends fc.Arbitrary<infer T> ? T : never;

/** Now and then somebody has an address that the platform does not take. */
function personRefused(weight: number) {
  const refused = fc.oneof(
    { weight: 20 - weight, arbitrary: fc.constant(false) },
    { weight, arbitrary: fc.constant(true) },
  );
  return fc.tuple(person, refused).map(([one, is]) => ({ ...one, refused: is }));
}

const newcomer = {
  crm: 'once',
  wishes: ['yes', '1'],
  unsubscribed: '',
  platform: 'absent',
} satisfies Partial<Person>;

/** Many people, most of them to be created. */
function crowd(weight: number) {
  const one = fc.tuple(personRefused(weight), fc.nat({ max: 4 }));
  const mostlyNew = one.map(([drawn, dice]): Person =>
    dice === 0 ? drawn : { ...drawn, ...newcomer },
  );
  return fc.array(mostlyNew, { minLength: 30, maxLength: 40, size: 'max' });
}

/** Some people, all of whom are created: what happens to them is what the story does. */
const newcomers = fc.array(
  personRefused(0).map((drawn): Person => ({ ...drawn, ...newcomer, refused: false })),
  { minLength: 40, maxLength: 44, size: 'max' },
);

/** One world and all that happens in it. */
export const story = fc.record({
  /** Draws identifiers, and everything that is drawn while the story is told. */
  chance: fc.nat({ max: 1_000_000 }),
  quirks: played,
  algorithm: pick(settings.algorithm),
  limit: pick(settings.limit),
  platformAhead: pick(settings.platformAhead),
  missing: pick(settings.missing),
  resubscribe: pick(settings.resubscribe),
  templates: pick(settings.templates),
  absentTemplates: pick(settings.absentTemplates),
  /** Often so few that much happens to each. */
  people: fc.oneof(
    { weight: 24, arbitrary: fc.array(personRefused(1), { minLength: 1, maxLength: 2 }) },
    {
      weight: 24,
      arbitrary: fc.array(personRefused(1), { minLength: 1, maxLength: 7, size: 'max' }),
    },
    { weight: 1, arbitrary: crowd(1) },
    { weight: 1, arbitrary: crowd(18) },
    { weight: 1, arbitrary: newcomers },
  ),
  letters: fc.array(letter, { maxLength: 2 }),
  steps,
  absent: pick(settings.absent),
  deletes: pick(settings.deletes),
  floor: pick(settings.floor),
  farewell: fc.option(farewell, { freq: 2, nil: undefined }),
  optIns: pick(settings.optIns),
  release: fc.option(release, { freq: 9, nil: undefined }),
  tells: pick(settings.tells),
  deleteAfter: pick(settings.deleteAfter),
  dates: pick(settings.dates),
  optOuts: pick(settings.optOuts),
  letterFloor: pick(settings.letterFloor),
  accident: fc.option(accident, { freq: 4, nil: undefined }),
  besides,
  /** What an operator decides before each approval of an ending. */
  verdict: fc.option(decide, { freq: 2, nil: undefined }),
  dispute: fc.option(dispute, { freq: 3, nil: undefined }),
  misexport: fc.option(misexport, { freq: 2, nil: undefined }),
});
export type Story = (typeof story extends fc.Arbitrary<infer T> ? T : never) & {
  /** What is changed first; undefined in stories without a canary. */
  canary?: CanaryPolicy;
};

export function isCrowd({ people }: Pick<Story, 'people'>): boolean {
  return people.length > 7;
}

/** What the platform shows of a channel where somebody has no subscription. */
export function fallbackOf({ quirks }: Pick<Story, 'quirks'>): string | undefined {
  return quirks.find((quirk) => quirk.startsWith('all-channels='))?.split('=')[1];
}

/** The story of a seed; the same for as long as this file and its library stay the same. */
export function storyOf(seed: number): Story {
  const [drawn] = fc.sample(fc.noBias(story), { seed, numRuns: 1 });
  if (!drawn) throw new Error('nothing was drawn');
  return drawn;
}
