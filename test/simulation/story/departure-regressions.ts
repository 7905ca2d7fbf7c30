/** What the simulation has found about opt-outs that nobody made, and those that somebody did. */
import { approval, forgetting, type Step } from './steps.ts';
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
import { sampled } from '../../support/extent.ts';

const bare = ['enrol-raw', 'all-channels=opt_out'];
const programOptsOut = { in: 'program', who: 0, does: 'opts out of the newsletter' } as const;
const product = { ...wanted, wishes: ['', '1'] } satisfies typeof wanted;
/** In one channel only: so the platform is known to have no defaults. */
const partly = { ...nobody, platform: 'subscribed', shown: ['in', 'none'] } satisfies typeof wanted;
const allowed: Step = { is: 'allow', who: 0, moved: false };

/** One story for each of the first requests of a run. */
const atRequests = (story: (nth: number) => Parameters<typeof told>): Regression['stories'] =>
  sampled([1, 2, 3, 4, 5, 6, 7], 3).map((nth) => told(...story(nth)));

export const departures: readonly Regression[] = [
  found(
    'another program’s opt-out, read late after a creation, counted as a default',
    ...atRequests((nth) => [
      [product],
      [
        run({
          mode: 'fast',
          faults: [{ nth, fault: '500-after' }],
          meanwhile: [{ nth: nth + 1, act: programOptsOut }],
        }),
        inCrm(0, 'wants the newsletter'),
        run({ mode: 'fast' }),
      ],
      { quirks: ['enrol-raw'] },
    ]),
    // Seen at once it does, until a listing or another creation shows that there are no defaults.
    ...atRequests((nth) => [
      [product, { ...wanted, wishes: ['yes', ''] }],
      [
        run({ meanwhile: [{ nth, act: programOptsOut }] }),
        run(),
        inCrm(0, 'wants the newsletter'),
        run({ mode: 'fast' }),
      ],
      { quirks: ['enrol-raw'] },
    ]),
  ),
  found(
    'the id of an erased person barred another record that got it',
    told(
      [
        { ...nobody, crm: 'once', wishes: ['yes', '1'], platform: 'subscribed' },
        { ...nobody, crm: 'once', wishes: ['', 'opt_in'], platform: 'subscribed' },
        { ...nobody, crm: 'once', platform: 'suppressed', shown: ['none', 'out'] },
        { ...nobody, crm: 'once', wishes: ['no', '0'], unsubscribed: 'true' },
      ],
      [
        inCrm(2, 'moves to a new address'),
        forgetting(0),
        run({ killed: 29 }),
        inCrm(3, 'gets the id of the next one'),
        run({ mode: 'fast' }),
        inCrm(0, 'forbids the newsletter'),
        run({
          meanwhile: [{ nth: 7, act: { in: 'crm', who: 3, does: 'has a broken address' } }],
        }),
        inCrm(3, 'is new'),
        inCrm(0, 'is new'),
        inCrm(0, 'wants the newsletter'),
        run(),
        inCrm(0, 'is removed'),
        run(),
        { is: 'pause', minutes: 1560 },
        inCrm(3, 'states a new will'),
        run(),
      ],
      { absent: 'opt_out', deletes: 'created', optIns: 1 },
    ),
    ...[member, wanted].map((other) =>
      told(
        [member, other],
        [
          forgetting(0),
          inCrm(1, 'gets the id of the next one'),
          run(),
          inCrm(0, 'is removed'),
          inCrm(1, 'wants the newsletter'),
          run(),
        ],
      ),
    ),
  ),
  found(
    'a default that no answer had shown was reported as an unsubscribe',
    ...[[run()], [run(), run({ mode: 'fast' })]].map((runs: Step[]) =>
      told(
        [
          { ...wanted, wishes: ['yes', ''] },
          { ...wanted, wishes: ['', '1'] },
        ],
        [...runs, run(), inCrm(0, 'wants the product mail'), inCrm(1, 'wants the newsletter')],
        { quirks: bare },
      ),
    ),
  ),
  found(
    'an unanswered opt-in in a channel with a default was reported as an unsubscribe',
    ...(['timeout-before', 'timeout-after'] as const).flatMap((fault) =>
      [bare, [...bare, 'enrol-touches']].flatMap((quirks) =>
        atRequests((nth) => [
          [
            { ...wanted, wishes: ['yes', ''] },
            { ...wanted, wishes: ['', '1'] },
          ],
          [
            run(),
            run(),
            inCrm(0, 'wants the product mail'),
            run({ faults: [{ nth, fault }] }),
            run(),
          ],
          { quirks },
        ]),
      ),
    ),
  ),
  found(
    'our unanswered opt-out was reported as an unsubscribe, once taken back',
    ...(['timeout-before', 'timeout-after'] as const).flatMap((fault) =>
      (['full', 'fast'] as const).flatMap((mode) =>
        atRequests((nth) => [
          [member, wanted],
          [
            run(),
            inCrm(0, 'forbids the newsletter'),
            run({ mode, faults: [{ nth, fault }] }),
            inCrm(0, 'wants the newsletter'),
            run({ mode, faults: [{ nth, fault }] }),
            run(),
          ],
        ]),
      ),
    ),
  ),
  found(
    'an opt-out of an unfinished erasure was reported as an unsubscribe',
    ...everywhere((killed) =>
      told([member, wanted], [run(), { ...forgetting(0), killed }, run(), run()]),
    ),
  ),
  found(
    'another contact of the address, in fewer channels, was reported as an unsubscribe',
    ...[onPlatform(0, 'is made twice'), onPlatform(0, 'is deleted')].map((act) =>
      told(
        [member, wanted],
        [
          run(),
          happens(act),
          happens({ in: 'program', who: 0, does: 'opts in to the newsletter' }),
          run(),
          run(),
        ],
      ),
    ),
  ),
  found(
    'a conflict over a renamed contact kept another contact of the person in',
    told(
      [nobody],
      [
        inCrm(0, 'is new'),
        inCrm(0, 'wants the newsletter'),
        run(),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'has a double that forbids the newsletter'),
        inCrm(0, 'leaves its double behind'),
        happens({ in: 'program', who: 0, does: 'opts in to the newsletter' }),
        happens(onPlatform(0, 'is made twice')),
        run(),
      ],
    ),
  ),
  found(
    'a contact that an opt-in found under another address was forgotten, with our opt-out of it',
    told(
      [nobody],
      [
        inCrm(0, 'is new'),
        inCrm(0, 'wants the newsletter'),
        run(),
        inCrm(0, 'forbids the newsletter'),
        run(),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'wants the newsletter'),
        run({ mode: 'fast' }),
        happens(onPlatform(0, 'signs up for the newsletter')),
        run(),
        happens(onPlatform(0, 'is given another address')),
        run(),
        inCrm(0, 'has a double that forbids the newsletter'),
        inCrm(0, 'leaves its double behind'),
        run(),
      ],
    ),
  ),
  found(
    'our unanswered opt-out counted as an unsubscribe under a new address',
    told(
      [nobody],
      [
        inCrm(0, 'is new'),
        run(),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'has a double that forbids the newsletter'),
        inCrm(0, 'leaves its double behind'),
        run({
          mode: 'fast',
          faults: [{ nth: 1, fault: 'garbage' }],
          jump: { touch: 1, seconds: -7200 },
        }),
      ],
    ),
  ),
  found(
    'an opt-out by contact id counted as an unsubscribe when another contact was out before',
    told(
      [wanted],
      [
        run(),
        happens(onPlatform(0, 'is made twice')),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'forbids the newsletter'),
        run(),
        inCrm(0, 'is new'),
        inCrm(0, 'wants the newsletter'),
        inCrm(0, 'moves to a new address'),
        run(),
      ],
    ),
  ),
  found(
    'a look that was older than an opt-in of the same run made it pass for a departure',
    told(
      [
        { ...product, crm: 'twice', platform: 'subscribed', shown: ['none', 'in'] },
        { ...nobody, crm: 'once' },
      ],
      [
        inCrm(0, 'wants no mail at all'),
        run(),
        inCrm(0, 'leaves its double behind'),
        inCrm(0, 'wants mail again'),
        inCrm(0, 'wants the newsletter'),
        inCrm(1, 'wants the newsletter'),
        { is: 'pause', minutes: 1560 },
        run(),
      ],
      { limit: 'contacts.enrol=1/400', tells: true },
    ),
  ),
  found(
    'an unanswered request kept the person out elsewhere, and nothing seemed to speak against it',
    told(
      [wanted],
      [
        run({ faults: [{ nth: 3, fault: '500-after' }] }),
        run(),
        inCrm(0, 'moves to a new address'),
      ],
      { quirks: ['all-channels=opt_out'] },
    ),
    told(
      [wanted],
      [
        run(),
        inCrm(0, 'is flagged as deleted'),
        run({ faults: [{ nth: 4, fault: 'reset-after' }] }),
        inCrm(0, 'is flagged no longer'),
      ],
      { deletes: 'created', limit: 'contacts.enrol=1/400', algorithm: 'sliding-counter' },
    ),
  ),
  found(
    'what an erasure had opted out was reported as a departure once `allow` took it back',
    ...[2, 3].flatMap((nth) => {
      const erased = { ...forgetting(0), faults: [{ nth, fault: 'timeout-after' as const }] };
      const ending = [allowed, inCrm(0, 'is new'), run({ mode: nth > 2 ? 'fast' : 'full' }), run()];
      return [
        told([member, partly], [run(), erased, ...ending]),
        told([{ ...member, crm: 'absent' }, partly], [erased, ...ending]),
      ];
    }),
    // An opt-out that the CRM states of an erased person is sent, and nothing is recorded.
    told(
      [{ ...member, wishes: ['no', ''] }, partly],
      [
        { ...forgetting(0), killed: 29 },
        { is: 'loss' },
        run(),
        allowed,
        allowed,
        inCrm(0, 'wants the newsletter'),
        run(),
      ],
    ),
  ),
  found(
    'an opt-out by id of a renamed contact left the former address subscribed for the checker',
    told(
      [{ ...member, wishes: ['yes', ''] }],
      [
        run(),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'forbids the newsletter'),
        run(),
        happens({ in: 'program', who: 0, does: 'opts in to the newsletter' }),
        happens(onPlatform(0, 'is taken out of the newsletter')),
        inCrm(0, 'wants the newsletter'),
        run(),
      ],
    ),
  ),
  found(
    'another program’s opt-out passed for a default, or was on an address that we had emptied',
    // Together with our creation: the answer shows both.
    ...[2, 3].map((nth) =>
      told(
        [{ ...wanted, wishes: ['no', '1'] }],
        [
          run({ meanwhile: [{ nth, act: programOptsOut }] }),
          run(),
          inCrm(0, 'wants the newsletter'),
          inCrm(0, 'moves to a new address'),
          run(),
        ],
        { absent: 'opt_out', deletes: 'created' },
      ),
    ),
    // After our own delete nothing of the former address is known.
    told(
      [member],
      [
        run(),
        inCrm(0, 'moves to a new address'),
        inCrm(0, 'forbids the newsletter'),
        run(),
        happens(programOptsOut),
        inCrm(0, 'wants the newsletter'),
        run(),
      ],
      { absent: 'opt_out', deletes: 'owned' },
    ),
  ),
  found(
    'an approved opt-out whose contact was gone seemed to be more than the guard lets pass',
    ...[2, 3, 4].map((nth) =>
      told(
        [{ ...member, shown: ['in', 'none'] }],
        [
          run(),
          inCrm(0, 'forbids the newsletter'),
          run(),
          approval,
          run({
            meanwhile: [
              { nth, act: onPlatform(0, 'is deleted') },
              { nth, act: { in: 'program', who: 0, does: 'opts in to the newsletter' } },
            ],
          }),
        ],
        { optOuts: 0 },
      ),
    ),
  ),
  found(
    'after `allow`, our opt-out of a renamed contact was reported as the person’s',
    told(
      [wanted],
      [
        run(),
        inCrm(0, 'wants no mail at all'),
        run({ meanwhile: [{ nth: 1, act: onPlatform(0, 'is given another address') }] }),
        allowed,
        inCrm(0, 'wants mail again'),
        inCrm(0, 'moves to a new address'),
        run(),
      ],
    ),
  ),
  found(
    'our opt-out was reported when a double took the address of a renamed contact',
    told(
      [member],
      [
        inCrm(0, 'forbids the product mail'),
        run(),
        inCrm(0, 'forbids the newsletter'),
        run({
          faults: [{ nth: 3, fault: 'timeout-before' }],
          meanwhile: [
            { nth: 1, act: onPlatform(0, 'is made twice') },
            { nth: 5, act: onPlatform(0, 'is given another address') },
          ],
        }),
        inCrm(0, 'moves to a new address'),
        run(),
        inCrm(0, 'wants the product mail'),
        run(),
      ],
    ),
  ),
  found(
    'our opt-out of a contact that a backup lacks was reported, of a platform with a faster clock',
    told(
      [{ ...nobody, crm: 'once', wishes: ['no', ''] }, wanted],
      [
        run(),
        { is: 'backup' },
        happens(onPlatform(0, 'signs up for the newsletter')),
        run(),
        inCrm(0, 'is removed'),
        { is: 'restore' },
        run(),
        inCrm(0, 'is new'),
        inCrm(0, 'wants the newsletter'),
        run(),
      ],
      { dates: 'none', platformAhead: 5 },
    ),
  ),
  found(
    'the id of a person who was forgotten barred the new address, after a run that was not whole',
    told(
      [member, { ...wanted, wishes: ['maybe', '1'] }],
      [run({ latency: 500 }), inCrm(0, 'moves to a new address'), forgetting(0)],
      { dates: 'wrong' },
    ),
  ),
  found(
    'a person who was allowed under a new address counted as having left under the former one',
    told(
      [{ ...member, platform: 'unsubscribed' }],
      [
        run(),
        inCrm(0, 'moves to a new address'),
        run(),
        { is: 'allow', who: 0, moved: true },
        run(),
      ],
      { absent: 'opt_out', deletes: 'owned' },
    ),
  ),
  found(
    'our opt-out of a renamed contact was reported once its former address was deleted',
    told(
      [{ ...nobody, wishes: ['yes', '1'], platform: 'blocked', shown: ['in', 'in'] }],
      [
        inCrm(0, 'is new'),
        inCrm(0, 'wants no mail at all'),
        run(),
        happens(onPlatform(0, 'is given another address')),
        inCrm(0, 'wants mail again'),
        inCrm(0, 'wants the newsletter'),
        happens(onPlatform(0, 'signs up for the newsletter')),
        run(),
        inCrm(0, 'is flagged as deleted'),
        run(),
        inCrm(0, 'is flagged no longer'),
        inCrm(0, 'moves to a new address'),
        run(),
      ],
      { deletes: 'owned', dates: 'none' },
    ),
  ),
];
