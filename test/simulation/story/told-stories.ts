/** Stories that are told by hand: who is in them, and what happens. */
import type { Act } from './actions.ts';
import { calm, type RunStep, type Step } from './steps.ts';
import type { Story } from './story.ts';
import { sampled } from '../../support/extent.ts';

type Person = Story['people'][number];

export const nobody: Person = {
  crm: 'absent',
  wishes: ['', ''],
  twinWish: '',
  unsubscribed: '',
  spelling: 'plain',
  platform: 'absent',
  shown: ['none', 'none'],
  refused: false,
};
/** In the CRM once, wanting both channels, and not on the platform. */
export const wanted: Person = { ...nobody, crm: 'once', wishes: ['yes', '1'] };
export const member: Person = { ...wanted, platform: 'subscribed', shown: ['in', 'in'] };

export interface Regression {
  found: string;
  /** Where a kill or a stop has to hit one moment, one story for each moment. */
  stories: Story[];
}

export const found = (text: string, ...stories: Story[]): Regression => ({ found: text, stories });

export function told(people: Person[], steps: Step[], more: Partial<Story> = {}): Story {
  return {
    chance: 0,
    quirks: [],
    algorithm: 'fixed',
    limit: '*=1000000/1',
    platformAhead: 0,
    missing: 'respect',
    resubscribe: 'never',
    templates: 'keep',
    absentTemplates: 'keep',
    absent: 'keep',
    deletes: 'off',
    floor: 10,
    farewell: undefined,
    optIns: 100,
    release: undefined,
    tells: false,
    deleteAfter: 0,
    dates: 'right',
    optOuts: 20,
    letterFloor: 3,
    accident: undefined,
    besides: [],
    verdict: undefined,
    dispute: undefined,
    misexport: undefined,
    letters: [],
    people,
    steps,
    ...more,
  };
}

export const run = (more: Partial<RunStep> = {}): Step => ({ ...calm, ...more });
export const inCrm = (who: number, does: Extract<Act, { in: 'crm' }>['does']): Step => ({
  is: 'act',
  act: { in: 'crm', who, does },
});
export const onLetter = (does: Extract<Act, { in: 'templates' }>['does']): Act => ({
  in: 'templates',
  who: 0,
  does,
});
export const inTemplates = (does: Extract<Act, { in: 'templates' }>['does']): Step =>
  happens(onLetter(does));
export const onPlatform = (who: number, does: Extract<Act, { in: 'platform' }>['does']): Act => ({
  in: 'platform',
  who,
  does,
});
export const happens = (act: Act): Step => ({ is: 'act', act });

/** One story for each of the first touches. */
export function everywhere(story: (touch: number) => Story): Story[] {
  const touches = Array.from({ length: 60 }, (_, at) => at + 1);
  return sampled(touches, 12).map(story);
}

/** We created the contact, and the platform opted it out of the newsletter by default. */
export function byDefault(...steps: Step[]): Story {
  return told([{ ...wanted, wishes: ['', '1'] }], [run(), ...steps], {
    quirks: ['all-channels=opt_out'],
  });
}
