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
} as const;
const settingNames = [
  'algorithm',
  'limit',
  'platformAhead',
  'missing',
  'resubscribe',
  'templates',
  'absentTemplates',
] as const;

/** What somebody does in the CRM about a person. */
const crmActs = [
  'wants the newsletter',
  'forbids the newsletter',
  'says nothing of the newsletter',
  'says maybe to the newsletter',
  'wants the product mail',
  'forbids the product mail',
  'wants no mail at all',
  'wants mail again',
  'states a new will',
  'is flagged as deleted',
  'is flagged no longer',
  'is spelt otherwise',
  'is new',
  'is removed',
  'is doubled',
  'moves to a new address',
  'moves to the address of the next one',
  'has a broken address',
  'gets the id of the next one',
] as const;

/** What a person, or a colleague, does on the platform. */
const platformActs = [
  'leaves the newsletter',
  'leaves the product mail',
  'unsubscribes from everything',
  'is blocked',
  'bounces',
  'comes back to all mail',
  'signs up for the newsletter',
  'signs up for the product mail in capitals',
  'is deleted',
  'is made twice',
  'is taken out of the newsletter',
  'is given another address',
  'is given another name',
] as const;

/** What another program does through the platform's API. */
const programActs = ['opts in to the newsletter', 'opts out of the newsletter'] as const;

/** What colleagues do to a template, on the platform or in the source. */
const templateActs = [
  'is edited on the platform',
  'is renamed on the platform',
  'is doubled on the platform',
  'is deleted on the platform',
  'changes in the source',
  'is removed from the source',
  'is new in the source',
  'gets another name in the source',
] as const;

const who = fc.nat({ max: 7 });
const act = fc.oneof(
  { weight: 3, arbitrary: fc.record({ in: fc.constant('crm'), who, does: pick(crmActs) }) },
  {
    weight: 3,
    arbitrary: fc.record({ in: fc.constant('platform'), who, does: pick(platformActs) }),
  },
  { weight: 1, arbitrary: fc.record({ in: fc.constant('program'), who, does: pick(programActs) }) },
  {
    weight: 1,
    arbitrary: fc.record({ in: fc.constant('templates'), who, does: pick(templateActs) }),
  },
);
export type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

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

/** A run of crm-mirror; what is counted is its requests, or its touches with the world outside. */
const run = fc.record({
  is: fc.constant('run'),
  mode: fc.constantFrom('full' as const, 'full', 'fast'),
  /** What the key may do. */
  key: fc.oneof(
    { weight: 20, arbitrary: fc.constant('everything' as const) },
    { weight: 1, arbitrary: pick(['nothing', 'read']) },
  ),
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
  jump: sometimes(fc.record({ touch, seconds: pick([-7200, -600, 90, 86_400]) })),
  /** Draws how long requests and answers travel; 0 = no time at all. */
  latency: fc.nat({ max: 1000 }),
});
export type RunStep = typeof run extends fc.Arbitrary<infer T> ? T : never;

/** A run in which nothing goes wrong. */
export const calm: RunStep = {
  is: 'run',
  mode: 'full',
  key: 'everything',
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
  acts: [
    ...crmActs.map((does) => `crm: ${does}`),
    ...platformActs.map((does) => `platform: ${does}`),
    ...programActs.map((does) => `program: ${does}`),
    ...templateActs.map((does) => `templates: ${does}`),
  ],
  befalls: [
    'full',
    'fast',
    ...readings.map((reading) => `the CRM is read ${reading}`),
    'the key may only read',
    'the key may do nothing',
    'budget eaten by others',
    'something happens meanwhile',
    'killed',
    'asked to stop',
    'a second process is started',
    'our clock jumps',
    'without latency',
  ],
  settings: settingNames.flatMap((name) => {
    const values: readonly unknown[] = settings[name];
    return [...new Set(values)].map((value) => `${name} ${value}`);
  }),
};

export function settingsOf(one: Story): string[] {
  return settingNames.map((name) => `${name} ${one[name]}`);
}

const step = fc.oneof(
  { weight: 4, arbitrary: run },
  { weight: 4, arbitrary: fc.record({ is: fc.constant('act'), act }) },
  {
    weight: 1,
    arbitrary: fc.record({ is: fc.constant('pause'), minutes: pick([1, 20, 130, 1560]) }),
  },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

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
    fc.array(person, { minLength: 1, maxLength: 2 }),
    fc.array(person, { minLength: 1, maxLength: 7, size: 'max' }),
  ),
  letters: fc.array(letter, { maxLength: 2 }),
  steps: fc.array(step, { minLength: 1, maxLength: 12, size: '+1' }),
});
export type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

/** In one of `weight + 10` times `weight`; else undefined. */
function sometimes<T>(arbitrary: fc.Arbitrary<T>, weight = 1): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 10, arbitrary: fc.constant(undefined) }, { weight, arbitrary });
}

function pick<const T>(values: readonly T[]): fc.Arbitrary<T> {
  return fc.constantFrom(...values);
}

/** The story of a seed; the same for as long as this file and its library stay the same. */
export function storyOf(seed: number): Story {
  const [drawn] = fc.sample(fc.noBias(story), { seed, numRuns: 1 });
  if (!drawn) throw new Error('nothing was drawn');
  return drawn;
}
