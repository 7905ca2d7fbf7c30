/**
 * What the simulation has found, each at its shortest. Kept as stories, not as seeds: what a seed
 * draws changes whenever something new may happen.
 */
import { departures } from './departure-regressions.ts';
import { operatorStories } from './operator-stories.ts';
import { leaving } from './unsubscribe-regressions.ts';
import { forgetting } from './steps.ts';
import {
  byDefault,
  everywhere,
  found,
  happens,
  inCrm,
  inTemplates,
  member,
  nobody,
  onLetter,
  onPlatform,
  run,
  told,
  wanted,
  type Regression,
} from './told-stories.ts';

const slow = { limit: 'contacts.enrol=1/400' as const, algorithm: 'sliding-counter' };

export const regressions: readonly Regression[] = [
  found(
    'a refused key was used again, by the other listing and by a look',
    told([nobody], [run({ key: 'nothing', faults: [{ nth: 1, fault: '500' }] })]),
    told([wanted], [run({ key: 'nothing', mode: 'fast', faults: [{ nth: 1, fault: '500' }] })], {
      letters: [{ crm: 'bare', platform: 'absent' }],
    }),
  ),
  found(
    'changes of a killed process stayed marked as sent when the next one had no time for them',
    ...everywhere((touch) =>
      told([nobody], [run({ killed: touch }), run({ stopped: 1 })], {
        letters: [{ crm: 'whole', platform: 'absent' }],
      }),
    ),
  ),
  found(
    'an opt-in that waited long for the limit was sent on an outdated observation',
    told(
      [
        { ...nobody, crm: 'deleted', wishes: ['yes', '0'] },
        { ...member, wishes: ['yes', '0'], shown: ['none', 'in'] },
      ],
      [
        happens(onPlatform(0, 'signs up for the product mail in capitals')),
        run({ meanwhile: [{ nth: 2, act: onPlatform(1, 'leaves the newsletter') }] }),
      ],
      slow,
    ),
    told(
      [wanted, wanted, wanted],
      [run({ faults: [{ nth: 5, fault: '500-after' }], jump: { touch: 1, seconds: -7200 } })],
      slow,
    ),
  ),
  found(
    'an older observation counted as current after the clock went back',
    told(
      [{ ...member, wishes: ['', '1'], shown: ['none', 'in'] }],
      [
        run({ jump: { touch: 1, seconds: -7200 } }),
        happens(onPlatform(0, 'unsubscribes from everything')),
        inCrm(0, 'wants the newsletter'),
        run({ mode: 'fast' }),
      ],
    ),
  ),
  found(
    'a newer consent outweighed an opt-out that was renewed unseen',
    told(
      [member],
      [
        happens(onPlatform(0, 'leaves the newsletter')),
        run(),
        inCrm(0, 'states a new will'),
        happens(onPlatform(0, 'signs up for the newsletter')),
        happens(onPlatform(0, 'leaves the newsletter')),
        run(),
        run({ mode: 'fast' }),
      ],
      { resubscribe: 'newer' },
    ),
  ),
  found(
    'an opt-out after a lost membership was outweighed by a consent before it',
    told(
      [member],
      [
        run(),
        happens(onPlatform(0, 'is taken out of the newsletter')),
        run(),
        inCrm(0, 'states a new will'),
        happens({ in: 'program', who: 0, does: 'opts out of the newsletter' }),
      ],
      { resubscribe: 'newer' },
    ),
  ),
  found(
    'an unanswered opt-out kept those of other channels from being sent',
    ...(['half', 'garbage', 'timeout-after'] as const).map((fault) =>
      told(
        [{ ...member, wishes: ['no', '0'] }],
        [run({ only: 'contacts', faults: [{ nth: 2, fault }] })],
      ),
    ),
  ),
  found(
    'of two contacts of one address, both refused, one was tried again in every run',
    told(
      [wanted],
      [
        run(),
        inCrm(0, 'wants no mail at all'),
        run({ meanwhile: [{ nth: 2, act: onPlatform(0, 'is made twice') }] }),
        run(),
      ],
      { quirks: ['all-channels=opt_in', 'no-flip', 'email-as-given'] },
    ),
  ),
  found(
    'an unanswered opt-in without effect counted as acknowledged',
    ...[3, 4, 5, 6].map((nth) =>
      told([wanted], [run({ faults: [{ nth, fault: 'reset-before' }] }), run({ mode: 'fast' })], {
        quirks: ['all-channels=opt_out'],
      }),
    ),
  ),
  found(
    'a record without an address did not block the opt-ins of the one that shares its id',
    told(
      [wanted, wanted],
      [inCrm(0, 'has a broken address'), inCrm(0, 'gets the id of the next one')],
    ),
  ),
  found(
    'an opt-out that a killed process never sent hid the person’s own',
    ...everywhere((touch) =>
      told(
        [member],
        [
          inCrm(0, 'wants no mail at all'),
          run({ killed: touch }),
          happens(onPlatform(0, 'leaves the newsletter')),
          run(),
          inCrm(0, 'wants mail again'),
        ],
      ),
    ),
  ),
  found(
    'a sign-up just before our opt-in was recorded as ours',
    told(
      [{ ...member, shown: ['none', 'in'] }],
      [run({ meanwhile: [{ nth: 2, act: onPlatform(0, 'signs up for the newsletter') }] })],
    ),
  ),
  found(
    'a fast run overwrote an edit by hand when the source changed',
    told(
      [nobody],
      [
        inTemplates('is new in the source'),
        run(),
        inTemplates('is edited on the platform'),
        run(),
        inTemplates('changes in the source'),
        run({ mode: 'fast' }),
      ],
    ),
  ),
  found(
    'an edit before a creation was read back counted as the platform’s own spelling',
    told(
      [nobody],
      [
        run({
          faults: [{ nth: 3, fault: 'garbage' }],
          meanwhile: [{ nth: 4, act: onLetter('is edited on the platform') }],
        }),
        inTemplates('changes in the source'),
        run({ mode: 'fast' }),
      ],
      { letters: [{ crm: 'bare', platform: 'absent' }] },
    ),
  ),
  found(
    'an unsubscribe before a creation was read back counted as a default',
    told(
      [wanted],
      [
        run({
          faults: [{ nth: 3, fault: '500-after' }],
          meanwhile: [{ nth: 4, act: onPlatform(0, 'leaves the product mail') }],
        }),
      ],
      { limit: 'contacts.enrol=1/400', algorithm: 'sliding-counter' },
    ),
  ),
  found(
    'an opt-out by default hid one that another contact of the address shows',
    byDefault(
      happens(onPlatform(0, 'is made twice')),
      inCrm(0, 'wants the newsletter'),
      inCrm(0, 'moves to a new address'),
    ),
  ),
  found(
    'of two contacts of one address a listing without proof showed one, who was opted in',
    ...Array.from({ length: 10 }, (_, chance) =>
      told(
        [
          { ...nobody, platform: 'unsubscribed', shown: ['in', 'in'] },
          nobody,
          { ...nobody, platform: 'blocked', shown: ['in', 'in'] },
          member,
        ],
        [
          happens(onPlatform(3, 'is made twice')),
          run({ faults: [2, 3, 4, 7, 8].map((nth) => ({ nth, fault: '500' })) }),
        ],
        {
          quirks: ['unsorted-ties'],
          chance,
          letters: [
            { crm: 'absent', platform: 'twice' },
            { crm: 'absent', platform: 'differs' },
          ],
        },
      ),
    ),
  ),
  found(
    'an unanswered opt-out, in a run that had not looked, hid the person’s own',
    // Lost before it arrives, and refused once and then found to be so already.
    ...(['timeout-before', '500'] as const).map((fault) =>
      told(
        [member],
        [
          run(),
          happens(onPlatform(0, 'leaves the newsletter')),
          inCrm(0, 'wants no mail at all'),
          run({ mode: 'fast', faults: [{ nth: 1, fault }] }),
          inCrm(0, 'wants mail again'),
        ],
      ),
    ),
  ),
  found(
    'a changed key without recorded contacts was never accepted',
    told([member], [run(), happens(onPlatform(0, 'is deleted')), run({ key: 'read' })]),
    ...everywhere((killed) => told([member], [run({ key: 'read' }), run({ killed })])),
  ),
  found(
    'a run stopped at its end said that it was done, and ended no first load',
    ...everywhere((touch) =>
      told(
        [member, nobody],
        [run({ stopped: touch + 60 }), inCrm(1, 'is new'), inCrm(1, 'wants the newsletter')],
        { optIns: 0 },
      ),
    ),
  ),
  found(
    'an unanswered request of an erasure was in no audit log',
    ...[2, 3, 4].map((nth) =>
      told(
        [member],
        [run(), { ...forgetting(0), faults: [{ nth, fault: 'timeout-after' }] }, forgetting(0)],
      ),
    ),
  ),
  ...leaving,
  ...departures,
  ...operatorStories,
];
