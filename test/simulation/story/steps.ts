/** What a story is made of: runs, what people do beside them, and what happens to the machine. */
import fc from 'fast-check';
import { faultKinds } from '../../../src/emulator/faults/faults.ts';
import { guardNames, type GuardClass } from '../../../src/domain/guard-classes.ts';
import { act, who, type Act } from './actions.ts';
import { pick, sometimes } from './random-draws.ts';

type Drawn<One> = One extends fc.Arbitrary<infer T> ? T : never;

/** A column of the export is wrong: that of the opt-outs is empty, or the answers are a row off. */
export const wrongColumns = ['with the opt-outs empty', 'with the answers a row off'] as const;

/** How the CRM is read: whole, as it was last time, wrong, with an error, or not at all. */
export const readings = [
  'whole',
  'unchanged',
  'cut short, and it shows',
  'cut short, and nothing shows it',
  'empty',
  'failing',
  ...wrongColumns,
] as const;

/** Those of the emulator, and one that happens before anything has left. */
export const faults = [...faultKinds.map(({ name }) => name), 'no connection'];
/** Most runs of so few people are short. */
const nth = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 40 }));
const touch = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 200 }));

/** By which a clock jumps. */
const seconds = pick([-7200, -600, 90, 86_400]);

const latency = fc.nat({ max: 1000 });

/** A run of crm-mirror; what is counted is its requests, or its touches with the world outside. */
const drawnRun = fc.record({
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
export type RunStep = Drawn<typeof drawnRun> & {
  /** It is limited to these people; undefined: it may change everybody. */
  chosen: readonly number[] | undefined;
  /** It undoes the n-th newest run that has changed anything; undefined: it undoes none. */
  undoes: number | undefined;
};
const run = drawnRun.map((drawn): RunStep => ({ ...drawn, chosen: undefined, undoes: undefined }));

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
  chosen: undefined,
  undoes: undefined,
};

/** Between runs. */
const pause = fc.record({ is: fc.constant('pause'), minutes: pick([1, 20, 130, 1560, 11_520]) });
const jump = fc.record({ is: fc.constant('jump'), seconds });
/** The snapshot is deleted, or was on a disk that broke. */
const loss = fc.record({ is: fc.constant('loss') });

/** Selects a part of what a guard holds, as the options of the commands do. */
export interface Part {
  channel?: 'ch_news' | 'ch_product';
  op?: 'create' | 'opt_in' | 'opt_out' | 'delete';
  guard?: GuardClass;
  people?: readonly number[];
}

/** About what a guard holds now, or held before; `part` undefined: about all of it. */
export type Decision = DecisionOf<'approve'> | DecisionOf<'reject'>;

interface DecisionOf<Is> {
  is: Is;
  which: number;
  part: Part | undefined;
}

/** All that a guard holds now is approved. */
export const approval: Decision = { is: 'approve', which: 0, part: undefined };
/** What a guard holds is approved. */
const approve = fc
  .record({ is: fc.constant('approve'), which: pick([0, 0, 0, 1]) })
  .map((drawn): DecisionOf<'approve'> => ({ ...drawn, part: undefined }));

const few = fc.uniqueArray(who, { minLength: 1, maxLength: 3 });
const part = fc.oneof<fc.Arbitrary<Part>[]>(
  fc.record({ channel: pick(['ch_news', 'ch_product']) }),
  fc.record({ op: pick(['create', 'opt_in', 'opt_out', 'delete']) }),
  fc.record({ guard: pick(guardNames) }),
  fc.record({ people: few }),
);
/** All of it or a part is rejected, or a part is approved. */
export const decide = fc.oneof(
  { weight: 2, arbitrary: decision('reject', fc.constant(undefined)) },
  { weight: 1, arbitrary: decision('reject', part) },
  { weight: 1, arbitrary: decision('approve', part) },
);

function decision<Is extends Decision['is']>(
  is: Is,
  of: fc.Arbitrary<Part | undefined>,
): fc.Arbitrary<DecisionOf<Is>> {
  return fc.record({ is: fc.constant(is), which: pick([0, 0, 0, 1]), part: of });
}

/** An operator settles what is in dispute about a channel of a person. */
const resolve = fc.record({
  is: fc.constant('resolve'),
  who,
  channel: pick(['ch_news', 'ch_news', 'ch_product']),
  as: pick(['in', 'out']),
});
/** What is recorded of a person is to be read again. */
const reset = fc.record({
  is: fc.constant('reset'),
  who,
  moved: pick([false, false, false, true]),
});
const limited = fc
  .record({ of: run, chosen: few })
  .map(({ of, chosen }): RunStep => ({ ...of, only: undefined, chosen }));
const quietly = fc
  .record({ latency, chosen: few })
  .map((drawn): RunStep => ({ ...calm, ...drawn }));

/** What else operators do. */
export const operatorStep = fc.oneof(
  { weight: 5, arbitrary: decide },
  { weight: 4, arbitrary: resolve },
  { weight: 2, arbitrary: reset },
  { weight: 2, arbitrary: quietly },
  { weight: 2, arbitrary: limited },
);

/** At the first address of the person, or at the one they move to. */
const target = { who, moved: pick([false, false, false, true]) };
const forget = fc.record({
  is: fc.constant('forget'),
  ...target,
  faults: fc.array(fc.record({ nth: fc.integer({ min: 1, max: 6 }), fault: pick(faults) }), {
    maxLength: 2,
  }),
  killed: sometimes(fc.integer({ min: 1, max: 30 }), 3),
  stopped: sometimes(fc.integer({ min: 1, max: 30 })),
  latency,
});
const allow = fc.record({ is: fc.constant('allow'), ...target });

/** Every step that is drawn as it is. */
export const step = {
  run,
  /** A run in which nothing goes wrong. */
  calm: latency.map((drawn): RunStep => ({ ...calm, latency: drawn })),
  pause,
  jump,
  loss,
  approve,
  forget,
  allow,
};
/** Somebody is forgotten, and nothing goes wrong. */
export function forgetting(one: number, moved = false): Forgetting {
  const quiet = { faults: [], killed: undefined, stopped: undefined, latency: 0 };
  return { is: 'forget', who: one, moved, ...quiet };
}

export type Forgetting = Drawn<typeof forget>;
export type Step =
  | Drawn<(typeof step)[keyof typeof step]>
  | Drawn<typeof operatorStep>
  | { is: 'act'; act: Act }
  /** The contacts are mapped in another way from now on. */
  | { is: 'remap' }
  /** A backup is made, or the last one is put back. */
  | { is: 'backup' }
  | { is: 'restore' };
export type Resolving = Drawn<typeof resolve>;
