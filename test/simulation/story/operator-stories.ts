/** What operators decide, and what becomes of it: told by hand, since chance seldom finds it. */
import { approval, calm, type Part, type Resolving, type Step } from './steps.ts';
import {
  everywhere,
  found,
  happens,
  inCrm,
  member,
  nobody,
  onPlatform,
  run,
  told,
  wanted,
  type Regression,
} from './told-stories.ts';
import type { Story } from './story.ts';

const reject = (part?: Part): Step => ({ is: 'reject', which: 0, part });
const approvePart = (part: Part): Step => ({ is: 'approve', which: 0, part });
const resolve = (as: Resolving['as']): Step => ({ is: 'resolve', who: 0, channel: 'ch_news', as });
const fast = run({ mode: 'fast' });
const day: Step = { is: 'pause', minutes: 1560 };
const reset: Step = { is: 'reset', who: 0, moved: false };

/** Nobody is opted in without an approval once a first load has ended. */
const tight: Partial<Story> = { optIns: 0, chance: 2 };
/** Two are members, and want the newsletter again that the CRM had forbidden. */
const twoBack: Step[] = [
  run(),
  ...[0, 1].map((one) => inCrm(one, 'forbids the newsletter')),
  run(),
  ...[0, 1].map((one) => inCrm(one, 'wants the newsletter')),
  run(),
];
/** On the platform, and in no channel. */
const inNothing: Story['people'][number] = { ...wanted, platform: 'subscribed' };
/** We have opted somebody out on the word of a double that is gone. */
const disputed: Step[] = [
  run(),
  inCrm(0, 'has a double that forbids the newsletter'),
  run(),
  inCrm(0, 'loses its double'),
  run(),
];

export const operatorStories: readonly Regression[] = [
  found(
    'a rejected opt-in is neither sent nor asked for, until that is taken back',
    told([member, member], [...twoBack, reject(), run(), fast, day, run()], tight),
    told([member, member], [...twoBack, reject(), run(), approval, run()], tight),
    told([member, member], [...twoBack, approval, reject(), run(), run()], tight),
  ),
  found(
    'a part of what is held is decided about, and the rest still waits',
    told([member, member], [...twoBack, reject({ people: [1] }), run(), approval, run()], tight),
    told([member, member], [...twoBack, approvePart({ people: [1] }), run(), run()], tight),
    told([wanted, member], [...twoBack, approvePart({ channel: 'ch_product' }), run()], tight),
    told([member, member], [...twoBack, approvePart({ op: 'delete' }), run(), reject()], tight),
  ),
  found(
    'a stated opt-out is not held back by a rejection',
    told(
      [member, member],
      [...twoBack, reject(), inCrm(0, 'forbids the product mail'), run(), fast],
      tight,
    ),
    told([member, member], [run(), inCrm(0, 'forbids the newsletter'), run(), reject(), run()], {
      optOuts: 0,
    }),
  ),
  found(
    'the rejected removal of an old address is asked for again once the new one is in place',
    told(
      [member, wanted],
      [
        inCrm(0, 'moves to a new address'),
        run(),
        inCrm(0, 'is removed'),
        run(),
        day,
        inCrm(1, 'states a new will'),
        run(),
        reject(),
        inCrm(0, 'is new'),
      ],
      { floor: 0, deletes: 'owned' },
    ),
  ),
  found(
    'an operator settles an opt-out of ours, as an opt-in or as an opt-out',
    told([member, member], [...disputed, resolve('in'), run(), run()]),
    told([member, member], [...disputed, resolve('in'), fast]),
    told([member, member], [...disputed, resolve('out'), run(), run()]),
    told([member, member], [...disputed, resolve('out'), run(), resolve('in'), run()]),
    told(
      [member, member],
      [...disputed, resolve('out'), run(), { is: 'allow', who: 0, moved: false }, run()],
    ),
  ),
  found(
    'an operator settles what may be a default of the platform',
    told([inNothing, member], [run(), resolve('in'), run(), run()], {
      quirks: ['all-channels=opt_out'],
    }),
    told([inNothing, wanted], [run(), resolve('in'), run(), run()], {
      quirks: ['all-channels=opt_out'],
    }),
    told([inNothing, wanted], [run(), run(), resolve('in'), fast], {
      quirks: ['all-channels=opt_out'],
    }),
    // Nobody has seen the subscription, so nobody can tell.
    told(
      [wanted, wanted],
      [
        happens(onPlatform(0, 'signs up for the newsletter')),
        happens(onPlatform(0, 'leaves the newsletter')),
        run(),
        run(),
        resolve('in'),
        run(),
      ],
      { quirks: ['all-channels=opt_out'] },
    ),
  ),
  found(
    'who says no after that, or said it on the platform, is not opted in',
    told(
      [member, member],
      [
        ...disputed,
        happens(onPlatform(0, 'signs up for the newsletter')),
        happens(onPlatform(0, 'leaves the newsletter')),
        resolve('in'),
        run(),
      ],
    ),
    told(
      [member, member],
      [
        ...disputed,
        resolve('in'),
        happens(onPlatform(0, 'signs up for the newsletter')),
        happens(onPlatform(0, 'leaves the newsletter')),
        run(),
        run(),
      ],
    ),
    told(
      [member, member],
      [run(), happens(onPlatform(0, 'leaves the newsletter')), run(), resolve('in'), run()],
    ),
    told(
      [member, member],
      [
        ...disputed,
        resolve('in'),
        happens(onPlatform(0, 'unsubscribes from everything')),
        run(),
        resolve('in'),
      ],
    ),
  ),
  found(
    'a conflict that is settled as an opt-out opts the person out',
    told(
      [member, member],
      [
        run(),
        inCrm(0, 'has a double that forbids the newsletter'),
        resolve('out'),
        inCrm(0, 'loses its double'),
        run(),
        run(),
      ],
    ),
  ),
  found(
    'what an operator settles holds for a former address, and opts it out as stated',
    told(
      [wanted, nobody],
      [
        run(),
        inCrm(0, 'moves to the address of the next one'),
        run(),
        inCrm(0, 'has a double that forbids the newsletter'),
        { is: 'resolve', who: 1, channel: 'ch_news', as: 'out' },
        run(),
      ],
      { floor: 0 },
    ),
  ),
  found(
    'a command that is refused leaves what a killed run is to audit to the next run',
    ...everywhere((touch) =>
      told([wanted], [run({ killed: touch + 130 }), resolve('in'), reset, run()]),
    ),
  ),
  found(
    'a limited run brings in the chosen people, and opts out everybody who is to be',
    told(
      [wanted, wanted, member],
      [
        run({ chosen: [0] }),
        inCrm(2, 'forbids the newsletter'),
        run({ chosen: [0] }),
        run({ chosen: [1], mode: 'fast' }),
      ],
    ),
    told(
      [member, member],
      [run(), inCrm(1, 'is removed'), run({ chosen: [0] }), day, run({ chosen: [0] }), run()],
      { absent: 'opt_out', deletes: 'owned' },
    ),
  ),
  found(
    'a reset loses no opt-out',
    told([member, member], [...disputed, reset, run(), reset, fast]),
    told(
      [member, member],
      [run(), happens(onPlatform(0, 'leaves the newsletter')), run(), reset, fast, reset, run()],
    ),
    told(
      [member, member],
      [
        run(),
        inCrm(0, 'forbids the newsletter'),
        run(),
        reset,
        inCrm(0, 'wants the newsletter'),
        fast,
      ],
    ),
    told([member, member], [...twoBack, reject(), reset, calm, calm], tight),
  ),
  found(
    'a decision that waited for the audit log is lost with the snapshot',
    told([member, member], [...twoBack, approval, { is: 'loss' }, run()], tight),
  ),
  found(
    'a person who signs up after an undo is opted in again after an absence',
    told(
      [wanted, wanted],
      [
        run(),
        run({ undoes: 0 }),
        happens(onPlatform(0, 'signs up for the newsletter')),
        inCrm(0, 'is removed'),
        run(),
        day,
        inCrm(1, 'states a new will'),
        run(),
        inCrm(0, 'is new'),
        run(),
      ],
      { absent: 'opt_out' },
    ),
  ),
];
