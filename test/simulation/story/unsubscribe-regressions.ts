/** What the simulation has found about people who move, are deleted or are forgotten. */
import { forgetting } from './steps.ts';
import {
  byDefault,
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

export const leaving: readonly Regression[] = [
  {
    found: 'who was erased, and opted out as the CRM wanted, was recorded as made by us',
    stories: [
      told(
        [member],
        [
          forgetting(0),
          happens(onPlatform(0, 'signs up for the newsletter')),
          inCrm(0, 'forbids the newsletter'),
          run(),
          inCrm(0, 'wants the newsletter'),
          happens(onPlatform(0, 'signs up for the newsletter')),
        ],
      ),
    ],
  },
  {
    found: 'an opt-out on a new contact of the address passed for ours, and was taken back',
    stories: [
      told(
        [{ ...wanted, wishes: ['no', '1'], platform: 'subscribed', shown: ['in', 'in'] }],
        [
          run(),
          happens(onPlatform(0, 'is given another address')),
          happens({ in: 'program', who: 0, does: 'opts out of the newsletter' }),
          inCrm(0, 'wants the newsletter'),
          run(),
        ],
      ),
    ],
  },
  {
    found: 'who was found under a new address was not looked for under the old one, which she left',
    stories: [
      told(
        [
          { ...wanted, wishes: ['yes', ''] },
          { ...nobody, platform: 'subscribed' },
        ],
        [
          run(),
          happens(onPlatform(0, 'leaves the newsletter')),
          inCrm(0, 'moves to the address of the next one'),
          run({ mode: 'fast' }),
        ],
      ),
    ],
  },
  {
    found: 'an opt-out that a creation left by default kept her out under her next address',
    stories: [
      byDefault(
        inCrm(0, 'wants the newsletter'),
        inCrm(0, 'forbids the product mail'),
        inCrm(0, 'moves to a new address'),
      ),
    ],
  },
  {
    found:
      'who moved to an address whose contact was given another was opted out under her old one',
    stories: [
      told(
        [member, member],
        [
          run(),
          inCrm(0, 'moves to a new address'),
          happens(onPlatform(0, 'is given another address')),
          inCrm(1, 'moves to the address of the next one'),
        ],
      ),
    ],
  },
  {
    found: 'what another program made while our creation was lost was deleted as made by us',
    stories: [
      told(
        [wanted, member],
        [
          run({
            only: 'contacts',
            faults: [{ nth: 2, fault: 'timeout-before' }],
            meanwhile: [
              { nth: 3, act: { in: 'program', who: 0, does: 'opts in to the newsletter' } },
            ],
          }),
          inCrm(0, 'is flagged as deleted'),
        ],
        { deletes: 'created' },
      ),
    ],
  },
  {
    found: 'whom a guard held was deleted when her new address was made in the same run',
    stories: [
      told(
        [wanted, wanted],
        [
          run(),
          ...[0, 1].map((who) => inCrm(who, 'is flagged as deleted')),
          run(),
          ...[0, 1].map((who) => inCrm(who, 'is flagged no longer')),
          inCrm(1, 'moves to a new address'),
        ],
        { deletes: 'owned', floor: 1 },
      ),
    ],
  },
  {
    found: 'who was forgotten in part, and changed since, was never deleted',
    stories: [
      told(
        [member],
        [
          run(),
          { ...forgetting(0), stopped: 1 },
          happens(onPlatform(0, 'leaves the newsletter')),
          inCrm(0, 'is flagged as deleted'),
        ],
        { deletes: 'owned' },
      ),
    ],
  },
  {
    found: 'who had an id that an erased person’s record had for a while was missed for no reason',
    stories: [
      // Her record takes the id of another one, and moves with it.
      told(
        [wanted, wanted],
        [
          forgetting(0),
          inCrm(0, 'gets the id of the next one'),
          run(),
          inCrm(1, 'moves to a new address'),
        ],
      ),
      // Another one takes the id of hers, and has one of its own after that.
      told(
        [wanted, { ...wanted, wishes: ['', '1'], platform: 'subscribed', shown: ['none', 'in'] }],
        [
          run(),
          forgetting(0),
          inCrm(1, 'gets the id of the next one'),
          run(),
          inCrm(1, 'is new'),
          inCrm(0, 'is removed'),
          inCrm(1, 'wants the newsletter'),
        ],
      ),
      // Nobody but a fast run has read that.
      told(
        [wanted, wanted],
        [
          forgetting(0),
          inCrm(0, 'gets the id of the next one'),
          run({ mode: 'fast' }),
          inCrm(0, 'is removed'),
          inCrm(1, 'is removed'),
          inCrm(1, 'is new'),
        ],
      ),
    ],
  },
  {
    found: 'an old address that waited for an opt-out no answer showed was to be gone too early',
    stories: [
      told([{ ...member, shown: ['in', 'out'] }], [run(), inCrm(0, 'moves to a new address')], {
        deletes: 'owned',
        quirks: ['enrol-raw', 'all-channels=opt_out'],
      }),
    ],
  },
  {
    found: 'who was met as gone from the CRM and stayed out was not ours once it named her',
    stories: [
      told(
        [
          {
            ...nobody,
            crm: 'deleted',
            wishes: ['yes', '0'],
            platform: 'suppressed',
            shown: ['in', 'in'],
          },
        ],
        [run(), inCrm(0, 'is flagged no longer'), run(), inCrm(0, 'moves to a new address')],
      ),
    ],
  },
];
