/** What the simulation has found about people who move, are deleted or are forgotten. */
import { approval, forgetting } from './steps.ts';
import {
  byDefault,
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

/** The CRM names the person again, under the address that the contact has by now. */
const comesBack = [
  inCrm(0, 'is new'),
  inCrm(0, 'wants the newsletter'),
  inCrm(0, 'moves to a new address'),
  run(),
];

export const leaving: readonly Regression[] = [
  found(
    'an opt-out of ours passed for a departure on a contact renamed beside another one',
    told(
      [{ ...member, wishes: ['no', '1'] }],
      [
        run(),
        happens(onPlatform(0, 'is made twice')),
        run(),
        happens(onPlatform(0, 'is given another address')),
        run(),
        ...comesBack,
      ],
    ),
    told(
      [{ ...member, wishes: ['no', '1'] }],
      [
        happens(onPlatform(0, 'is made twice')),
        run(),
        happens(onPlatform(0, 'is given another address')),
        run(),
        ...comesBack,
      ],
    ),
  ),
  found(
    'the hold of an opt-out ended when one of two contacts of the address was opted out',
    told(
      [{ ...member, wishes: ['yes', '0'] }],
      [
        run(),
        approval,
        happens(onPlatform(0, 'is made twice')),
        run(),
        { is: 'pause', minutes: 1560 },
        run(),
      ],
      { optOuts: 0, quirks: ['all-channels=opt_in'] },
    ),
  ),
  found(
    'an opt-out of ours on a renamed contact passed for a departure, as its former address was left since',
    told(
      [{ ...member, wishes: ['no', '1'] }],
      [
        run(),
        happens(onPlatform(0, 'is given another address')),
        happens({ in: 'program', who: 0, does: 'opts out of the newsletter' }),
        run(),
        ...comesBack,
      ],
    ),
  ),
  found(
    'an erased person, opted out as the CRM wanted, was recorded as created by us',
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
  ),
  found(
    'an opt-out on a new contact of the address counted as ours, and was taken back',
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
  ),
  found(
    'a person found under a new address was not looked up under the old one they had left',
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
  ),
  found(
    'a default opt-out from a creation kept the person out under the next address',
    byDefault(
      inCrm(0, 'wants the newsletter'),
      inCrm(0, 'forbids the product mail'),
      inCrm(0, 'moves to a new address'),
    ),
  ),
  found(
    'a person was opted out under the old address while the new contact was renamed',
    told(
      [member, member],
      [
        run(),
        inCrm(0, 'moves to a new address'),
        happens(onPlatform(0, 'is given another address')),
        inCrm(1, 'moves to the address of the next one'),
      ],
    ),
  ),
  found(
    'a contact of another program was deleted as ours when our creation was lost',
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
  ),
  found(
    'a held contact was deleted when its new address was created in the same run',
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
  ),
  found(
    'a partly forgotten person who changed since was never deleted',
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
  ),
  found(
    'a person with an id that an erased record once had was reported without a reason',
    // The record takes the id of another one, and moves with it.
    told(
      [wanted, wanted],
      [
        forgetting(0),
        inCrm(0, 'gets the id of the next one'),
        run(),
        inCrm(1, 'moves to a new address'),
      ],
    ),
    // Another record takes this one's id, and has its own after that.
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
  ),
  found(
    'an old address that waits for an opt-out without an answer was expected gone too early',
    told([{ ...member, shown: ['in', 'out'] }], [run(), inCrm(0, 'moves to a new address')], {
      deletes: 'owned',
      quirks: ['enrol-raw', 'all-channels=opt_out'],
    }),
  ),
  found(
    'a person first seen as deleted was not ours once the CRM named them',
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
  ),
];
