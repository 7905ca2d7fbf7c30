/** How a story may end: what needs so many steps in a row that chance seldom finds them. */
import fc from 'fast-check';
import type { Act } from './acts.ts';
import { pick } from './draw.ts';
import { calm, step, type Step } from './steps.ts';
import type { Story } from './story.ts';

type CrmAct = Extract<Act, { in: 'crm' }>['does'];

const some = fc.uniqueArray(fc.nat({ max: 6 }), { minLength: 1, maxLength: 3 });

/** Some leave the CRM, and it is read twice, a day apart. */
export const farewell = fc.record({
  who: some,
  does: pick(['is removed', 'is removed', 'is flagged as deleted']),
  /** Somebody else, so that the second reading is another. */
  other: fc.nat(),
  run: step.run,
});

/** What is held then, or on other ground, is approved, and others come in after that. */
export const release = fc.record({
  who: some,
  other: fc.nat(),
  /** Wanted by the next run, or again when it was done once, or when the approval is too old. */
  how: pick(['at once', 'at once', 'again', 'late']),
  run: step.run,
});

/** All that happens in a story. */
export function stepsOf(story: Story): Step[] {
  return [...story.steps, ...farewellOf(story), ...releaseOf(story)];
}

const act = (who: number, does: CrmAct): Step => ({ is: 'act', act: { in: 'crm', who, does } });
const fast: Step = { ...calm, mode: 'fast' };
const approve: Step = { is: 'approve', which: 0 };
const eightDays: Step = { is: 'pause', minutes: 11_520 };

/** Who does it, in a story of so many people, and somebody else. */
function castOf(
  { who, other }: { who: readonly number[]; other: number },
  { people }: Pick<Story, 'people'>,
) {
  const stays = other % people.length;
  const all = [...new Set(who.map((one) => one % people.length))];
  return { stays, others: all.filter((one) => one !== stays) };
}

function farewellOf(story: Story): Step[] {
  const { farewell: parting } = story;
  if (!parting) return [];
  const { stays, others: leaving } = castOf(parting, story);
  return [
    act(stays, 'is new'),
    ...leaving.flatMap((one) => [act(one, 'is new'), act(one, 'wants the newsletter')]),
    calm,
    ...leaving.map((one) => act(one, parting.does)),
    calm,
    { is: 'pause', minutes: 1560 },
    act(stays, 'states a new will'),
    { ...parting.run, mode: 'full', reading: 'whole' },
  ];
}

/** Only where a guard is tight enough to hold what is to be approved. */
function releaseOf(story: Story): Step[] {
  const { release: one, optIns, floor } = story;
  if (!one) return [];
  const { stays, others } = castOf(one, story);
  if (optIns < 100) {
    const comes = (who: number): Step[] => [
      act(who, 'is new'),
      act(who, 'wants the newsletter'),
      act(who, 'moves to a new address'),
    ];
    const brought = others.length > 0 ? others : [stays];
    const wanted = [...brought.flatMap(comes), calm, approve];
    return [calm, ...wanted, ...(others.length > 0 ? comes(stays) : []), ...endOf(one, brought)];
  }
  if (floor > 0 || !story.farewell) return [];
  const late = one.how === 'late' ? [eightDays] : [];
  return [approve, act(stays, 'is flagged as deleted'), ...late, { ...one.run, reading: 'whole' }];
}

function endOf({ how, run }: NonNullable<Story['release']>, whom: readonly number[]): Step[] {
  if (how === 'late') return [eightDays, calm];
  if (how === 'at once') return [{ ...run, reading: 'whole' }];
  const all = (does: CrmAct): Step[] => whom.map((one) => act(one, does));
  return [fast, ...all('forbids the newsletter'), fast, ...all('wants the newsletter'), fast];
}
