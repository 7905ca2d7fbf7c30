/** How a story may end: what needs so many steps in a row that chance seldom finds them. */
import fc from 'fast-check';
import { who, type Act } from './actions.ts';
import { pick } from './random-draws.ts';
import { member } from './rare-sequences.ts';
import { approval, calm, operatorStep, step, type Step, wrongColumns } from './steps.ts';
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
  /**
   * Wanted by the next run, again when it was done, or when the approval has ended, or is old; or
   * nothing is approved, and fewer are held than would be.
   */
  how: pick(['at once', 'again', 'ended', 'late', 'fewer']),
  run: step.run,
});

/** A column is wrong, or it is not: many are out of the newsletter at once. */
export const accident = fc.record({
  mode: pick(['full', 'fast']),
  /** What comes after it, each time with a run. */
  how: pick(['waits', 'waits', 'approved', 'mended', 'one more']),
  other: fc.nat(),
  run: step.run,
});

/** A story begins with some who want no mail, and then a column of the export is wrong. */
export const misexport = fc.record({
  /** Every third of them, or pairs: then a row off is half of those who said no. */
  who: pick(['thirds', 'pairs']),
  /** Whether the run that reads them first dies. */
  before: pick(['calm', 'calm', 'calm', 'killed']),
  reading: pick(wrongColumns),
  mode: pick(['full', 'fast']),
  approves: pick([false, false, true]),
});

/** The CRM no longer says why somebody is out, or never said: an operator settles that. */
export const dispute = fc.record({
  who,
  as: pick(['in', 'in', 'out']),
  /** What happens before the run after it. */
  after: pick([
    undefined,
    undefined,
    'signs up for the newsletter',
    'leaves the newsletter',
    'unsubscribes from everything',
  ]),
  run: step.run,
});

/** What operators do besides, each time at some point of the story. */
export const besides = fc.array(fc.record({ at: fc.nat({ max: 60 }), does: operatorStep }), {
  maxLength: 3,
});

/** All that happens in a story. */
export function stepsOf(story: Story): Step[] {
  const { verdict, besides: others } = story;
  const endings = [...farewellOf(story), ...releaseOf(story), ...accidentOf(story)];
  const all = [
    ...misexportOf(story),
    ...story.steps,
    ...endings.flatMap((one) => (one.is === 'approve' && verdict ? [verdict, calm, one] : [one])),
    ...disputeOf(story),
  ];
  return others.reduce(
    (told, { at, does }) => told.toSpliced(at % (told.length + 1), 0, does),
    all,
  );
}

function disputeOf(story: Story): Step[] {
  if (!story.dispute) return [];
  const { who: one, as, after, run } = story.dispute;
  const resolve: Step = { is: 'resolve', who: one, channel: 'ch_news', as };
  const more: Step[] = after ? [{ is: 'act', act: { in: 'platform', who: one, does: after } }] : [];
  const comes = member.map((each): Step => ({ is: 'act', act: { ...each, who: one } }));
  // Where that is shown as an opt-out, nobody is known to have said no.
  const isDefault = story.quirks.includes('all-channels=opt_out');
  const before = isDefault ? byNobody(one) : [...comes, calm, ...ours(one)];
  return [...before, calm, resolve, ...more, { ...run, reading: 'whole' }, calm];
}

function misexportOf(story: Story): Step[] {
  if (!story.misexport) return [];
  const { who: which, before, reading, mode, approves } = story.misexport;
  const { people } = story;
  const wrong: Step = { ...calm, mode, reading };
  return [
    ...people.flatMap((_, at) => [
      act(at, 'is removed'),
      act(at, 'is new'),
      ...((which === 'pairs' ? at % 4 < 2 : at % 3 === 0) ? [act(at, optOutIn[reading])] : []),
    ]),
    before === 'killed' ? { ...calm, killed: 3 * people.length } : calm,
    wrong,
    ...(approves ? [approval] : []),
    wrong,
  ];
}

/** How somebody opts out in the column that comes wrong. */
const optOutIn = {
  'with the opt-outs empty': 'wants no mail at all',
  'with the answers a row off': 'forbids the newsletter',
} as const satisfies Record<string, CrmAct>;

/** Our opt-out, on the word of a record that is gone. */
function ours(one: number): Step[] {
  return [act(one, 'has a double that forbids the newsletter'), calm, act(one, 'loses its double')];
}

/** Somebody comes to the platform, and to another channel. */
function byNobody(one: number): Step[] {
  const does = 'signs up for the product mail in capitals';
  return [
    act(one, 'is new'),
    ...want([one]),
    { is: 'act', act: { in: 'platform', who: one, does } },
  ];
}

const day: Step = { is: 'pause', minutes: 1560 };

function accidentOf(story: Story): Step[] {
  const { accident: drawn } = story;
  if (!drawn) return [];
  const { mode, how, other, run } = drawn;
  const all = story.people.slice(0, 7).map((_, at) => at);
  const one = other % story.people.length;
  const most = all.filter((at) => at !== one || how !== 'one more');
  const after: Record<typeof how, Step[]> = {
    waits: [calm, day, day, day, run, { ...calm, mode }],
    approved: [approval, run, calm],
    mended: [...all.map((at) => act(at, 'wants the newsletter')), run, calm, day, fast],
    'one more': [act(one, 'forbids the newsletter'), run, fast],
  };
  return [
    ...all.flatMap((at) =>
      member.filter((line) => line.in === 'crm').map(({ does }) => act(at, does)),
    ),
    calm,
    ...most.map((at) => act(at, 'forbids the newsletter')),
    { ...calm, mode },
    ...after[how],
  ];
}

const act = (who: number, does: CrmAct): Step => ({ is: 'act', act: { in: 'crm', who, does } });
const fast: Step = { ...calm, mode: 'fast' };
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
    ...(story.deleteAfter > 0 ? [...laterOf(stays), ...laterOf(stays)] : []),
  ];
}

/** Another day, and another reading. */
function laterOf(stays: number): Step[] {
  return [{ is: 'pause', minutes: 1560 }, act(stays, 'states a new will'), calm];
}

/** Only where a guard is tight enough to hold what is to be approved. */
function releaseOf(story: Story): Step[] {
  const { release: one, optIns, floor } = story;
  if (!one) return [];
  const { how, run } = one;
  const { stays, others } = castOf(one, story);
  const last: Step = { ...run, reading: 'whole' };
  const late = how === 'late' ? [eightDays] : [];
  if (optIns < 100) {
    const group = others.length > 0 ? others : [stays];
    if (how === 'again') return againOf(group);
    if (how === 'fewer') return [...fewerOf([stays, ...others]), last];
    const comes = [...group.flatMap(moves), calm, approval];
    if (how === 'ended') return [calm, ...comes, ...forbid(group), calm, ...want(group), fast];
    return [calm, ...comes, ...(others.length > 0 ? moves(stays) : []), ...late, last];
  }
  const [leaver] = castOf(story.farewell ?? one, story).others;
  if (floor > 1 || !story.farewell || leaver === undefined) return [];
  if (how === 'fewer') return [calm, ...returns(leaver), last];
  return [approval, act(stays, 'is flagged as deleted'), ...late, last];
}

const forbid = (group: readonly number[]) => group.map((one) => act(one, 'forbids the newsletter'));
const want = (group: readonly number[]) => group.map((one) => act(one, 'wants the newsletter'));

/** Somebody is to be made under a new address. */
function moves(who: number): Step[] {
  return [act(who, 'is new'), ...want([who]), act(who, 'moves to a new address')];
}

function returns(who: number): Step[] {
  return [act(who, 'is new'), act(who, 'is flagged no longer')];
}

/** They are opted in, out and back in, which is approved, and the same again. */
function againOf(group: readonly number[]): Step[] {
  return [...backOf(group), approval, fast, ...forbid(group), fast, ...want(group), fast];
}

/** The same, but nothing is approved, and all but one are to stay out after all. */
function fewerOf(group: readonly number[]): Step[] {
  return [...backOf(group), ...forbid(group.length > 1 ? group.slice(1) : group), fast];
}

/** Whatever the CRM had of them before, they are in, are opted out, and are to be in again. */
function backOf(group: readonly number[]): Step[] {
  const joins = (who: number): Step[] => [
    act(who, 'is removed'),
    ...member.map((one): Step => ({ is: 'act', act: { ...one, who } })),
  ];
  return [...group.flatMap(joins), calm, ...forbid(group), calm, ...want(group), calm];
}
