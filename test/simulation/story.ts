/**
 * What may happen in a simulated world, drawn from one seed. Everything here is plain data that
 * fast-check can draw and shrink: the same story is the same world, whoever plays it.
 */
import fc from 'fast-check';
import { faultKinds } from '../../src/emulator/fault/kinds.ts';
import { algorithms } from '../../src/emulator/limit/algorithms.ts';
import { quirks } from '../../src/emulator/quirk/quirks.ts';
import { letter } from '../sync/letters.ts';
import { person } from '../sync/people.ts';
import { act, allActs, who, type Act } from './acts.ts';
import { plots, type Plot } from './plots.ts';

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
  floor: [10, 10, 0],
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
] as const;

/** How the CRM is read: whole, as it was last time, with an error, or not at all. */
const readings = [
  'whole',
  'unchanged',
  'cut short, and it shows',
  'cut short, and nothing shows it',
  'empty',
  'failing',
] as const;

/** Those of the emulator, and one that happens before anything has left. */
const faults = [...faultKinds.map(({ name }) => name), 'no connection'];
/** Most runs of so few people are short. */
const nth = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 40 }));
const touch = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 200 }));

/** By which a clock jumps. */
const seconds = pick([-7200, -600, 90, 86_400]);

const latency = fc.nat({ max: 1000 });

/** A run of crm-mirror; what is counted is its requests, or its touches with the world outside. */
const run = fc.record({
  is: fc.constant('run'),
  mode: fc.constantFrom('full' as const, 'full', 'fast'),
  /** What the key may do. */
  key: fc.oneof(
    { weight: 20, arbitrary: fc.constant('everything' as const) },
    { weight: 1, arbitrary: pick(['nothing', 'read']) },
  ),
  /** It is refused from the n-th request on, and accepted again in the next run. */
  refused: sometimes(nth),
  /** A plan: nothing is written. */
  plans: fc.oneof(
    { weight: 14, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
  only: sometimes(pick(['contacts', 'templates'])),
  reading: fc.oneof(
    { weight: 3, arbitrary: fc.constant('whole' as const) },
    { weight: 2, arbitrary: pick(readings) },
  ),
  /** What becomes of the n-th request. */
  faults: fc.array(fc.record({ nth, fault: pick(faults) }), { maxLength: 10, size: '+1' }),
  /** Other programs eat the budget before the n-th request. */
  eaten: sometimes(nth),
  /** What happens while the n-th request is under way. */
  meanwhile: fc.array(fc.record({ nth, act }), { maxLength: 3 }),
  /** The process is killed at its n-th touch. */
  killed: sometimes(touch, 3),
  /** It is asked to stop at its n-th touch. */
  stopped: sometimes(touch),
  /** A second process is started at the n-th touch. */
  rival: sometimes(touch),
  /** Seconds by which our clock jumps at the n-th touch. */
  jump: sometimes(fc.record({ touch, seconds })),
  /** Draws how long requests and answers travel; 0 = no time at all. */
  latency,
});
export type RunStep = typeof run extends fc.Arbitrary<infer T> ? T : never;

/** A run in which nothing goes wrong. */
export const calm: RunStep = {
  is: 'run',
  mode: 'full',
  key: 'everything',
  refused: undefined,
  plans: false,
  only: undefined,
  reading: 'whole',
  faults: [],
  eaten: undefined,
  meanwhile: [],
  killed: undefined,
  stopped: undefined,
  rival: undefined,
  jump: undefined,
  latency: 0,
};

/** All that a story may choose from, as what it comes to is counted. */
export const choices = {
  quirks: variants,
  faults,
  acts: allActs,
  befalls: [
    'full',
    'fast',
    ...readings.map((reading) => `the CRM is read ${reading}`),
    'the key may only read',
    'the key may do nothing',
    'the key is refused in mid-run',
    'it only plans',
    'only contacts',
    'only templates',
    'budget eaten by others',
    'something happens meanwhile',
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
    'a guard holds who left',
    'its key is not proven',
  ],
  settings: settingNames.flatMap((name) => {
    const values: readonly unknown[] = settings[name];
    return [...new Set(values)].map((value) => `${name} ${value}`);
  }),
};

export function settingsOf(one: Story): string[] {
  return settingNames.map((name) => `${name} ${one[name]}`);
}

/** Between runs. */
const pause = fc.record({ is: fc.constant('pause'), minutes: pick([1, 20, 130, 1560]) });
const jump = fc.record({ is: fc.constant('jump'), seconds });
/** The snapshot is deleted, or was on a disk that broke. */
const loss = fc.record({ is: fc.constant('loss') });
export type Step =
  | RunStep
  | { is: 'act'; act: Act }
  | (typeof pause | typeof jump | typeof loss extends fc.Arbitrary<infer T> ? T : never);

/** A plot about somebody, each line of it followed by a run in which mostly nothing goes wrong. */
const plot = fc
  .record({
    who,
    lines: fc.constantFrom<Plot>(...plots),
    runs: fc.array(
      fc.oneof(
        { weight: 5, arbitrary: latency.map((drawn): RunStep => ({ ...calm, latency: drawn })) },
        { weight: 1, arbitrary: run },
      ),
      { minLength: 4, maxLength: 4 },
    ),
  })
  .map(({ who: whom, lines, runs }): Step[] =>
    lines.flatMap((line, at) => {
      const drawn = runs[at] ?? calm;
      return [
        ...line.flatMap((one) => stepsFor(one, whom)),
        line.includes('key') ? { ...drawn, key: 'read' } : drawn,
      ];
    }),
  );

function stepsFor(one: Plot[number][number], whom: number): Step[] {
  if (one === 'key') return [];
  return [one === 'loss' ? { is: 'loss' } : { is: 'act', act: { ...one, who: whom } }];
}

const steps = fc
  .array(
    fc.oneof(
      { weight: 30, arbitrary: run.map((one): Step[] => [one]) },
      { weight: 30, arbitrary: act.map((one): Step[] => [{ is: 'act', act: one }]) },
      { weight: 7, arbitrary: pause.map((one): Step[] => [one]) },
      { weight: 2, arbitrary: jump.map((one): Step[] => [one]) },
      { weight: 1, arbitrary: loss.map((one): Step[] => [one]) },
      { weight: 5, arbitrary: plot },
    ),
    { minLength: 1, maxLength: 12, size: '+1' },
  )
  .map((all) => all.flat());

/** In the end some leave the CRM, and it is read twice, a day apart: chance hardly does that. */
const farewell = fc.record({
  who: fc.uniqueArray(fc.nat({ max: 6 }), { minLength: 1, maxLength: 3 }),
  does: pick(['is removed', 'is removed', 'is flagged as deleted']),
  /** Somebody else, so that the second reading is another. */
  other: fc.nat(),
  run,
});

/** All that happens in a story. */
export function stepsOf({ steps: own, people, farewell: parting }: Story): Step[] {
  if (!parting) return own;
  const { who: whom, does, other, run: last } = parting;
  const stays = other % people.length;
  const leaving = [...new Set(whom.map((one) => one % people.length))].filter((at) => at !== stays);
  const act = (one: number, what: CrmAct): Step => {
    return { is: 'act', act: { in: 'crm', who: one, does: what } };
  };
  return [
    ...own,
    act(stays, 'is new'),
    ...leaving.flatMap((one) => [act(one, 'is new'), act(one, 'wants the newsletter')]),
    calm,
    ...leaving.map((one) => act(one, does)),
    calm,
    { is: 'pause', minutes: 1560 },
    act(stays, 'states a new will'),
    { ...last, mode: 'full', reading: 'whole' },
  ];
}

type CrmAct = Extract<Act, { in: 'crm' }>['does'];

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

/** Many of whom most are to be made. */
function crowd(weight: number) {
  const one = fc.tuple(personRefused(weight), fc.nat({ max: 4 }));
  const mostlyNew = one.map(([drawn, dice]): Person =>
    dice === 0 ? drawn : { ...drawn, ...newcomer },
  );
  return fc.array(mostlyNew, { minLength: 30, maxLength: 40, size: 'max' });
}

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
  ),
  letters: fc.array(letter, { maxLength: 2 }),
  steps,
  absent: pick(settings.absent),
  deletes: pick(settings.deletes),
  floor: pick(settings.floor),
  farewell: fc.option(farewell, { freq: 2, nil: undefined }),
});
export type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

/** In one of `weight + 10` times `weight`; else undefined. */
function sometimes<T>(arbitrary: fc.Arbitrary<T>, weight = 1): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 10, arbitrary: fc.constant(undefined) }, { weight, arbitrary });
}

function pick<const T>(values: readonly T[]): fc.Arbitrary<T> {
  return fc.constantFrom(...values);
}

export function isCrowd({ people }: Pick<Story, 'people'>): boolean {
  return people.length > 7;
}

/** The story of a seed; the same for as long as this file and its library stay the same. */
export function storyOf(seed: number): Story {
  const [drawn] = fc.sample(fc.noBias(story), { seed, numRuns: 1 });
  if (!drawn) throw new Error('nothing was drawn');
  return drawn;
}
