/** A story in plain words, to find out what went wrong. */
import { addressOf } from '../../support/engine/sample-people.ts';
import type { Act } from './actions.ts';
import { addressNamed } from '../world/operator-commands.ts';
import type { Decision, RunStep, Step } from './steps.ts';
import type { Story } from './story.ts';

type Errand = Extract<
  Step,
  { is: 'approve' | 'reject' | 'resolve' | 'reset' | 'forget' | 'allow' }
>;

/** How the world was before anything happened. */
export function beginning(story: Story): string[] {
  const { quirks, algorithm, limit, platformAhead } = story;
  const policy = `missing: ${story.missing}, resubscribe: ${story.resubscribe}, templates: ${story.templates}, absentTemplates: ${story.absentTemplates}`;
  const leaving = `absent: ${story.absent}, deletes: ${story.deletes}, deleted after ${story.deleteAfter} hours, at most ${story.floor} a run`;
  const coming = story.optIns < 100 ? `, at most ${story.optIns} brought in` : '';
  const ahead = platformAhead === 0 ? '' : `, its clock ${platformAhead} hours ahead of ours`;
  const dates = story.dates === 'right' ? '' : `, of which it tells ${story.dates}`;
  return [
    `A platform with ${quirks.join(', ') || 'no quirks'}, limit ${limit} (${algorithm})${ahead}${dates}; ${policy}, ${leaving}${coming}.`,
    ...story.people.map((_, at) => `  ${person(story, at)}`),
    ...story.letters.map(
      ({ crm, platform }, at) =>
        `  letter-${at}: ${crm} in the source, ${platform} on the platform`,
    ),
  ];
}

function person({ people }: Story, at: number): string {
  const one = people[at];
  if (!one) return '';
  const { crm, wishes, twinWish, unsubscribed, spelling, platform, shown, refused } = one;
  const say = (wish: string): string => `"${wish}"`;
  const twin = crm === 'twice' ? `, a second record says ${say(twinWish)} to the newsletter` : '';
  const none = unsubscribed === 'true' ? ', wants no mail at all' : '';
  const odd = refused ? ', at an address that the platform refuses' : '';
  const spelt = spelling === 'plain' ? '' : `, spelt ${spelling}`;
  const inCrm =
    crm === 'absent'
      ? 'not in the CRM'
      : `in the CRM ${crm}, news ${say(wishes[0])}, product ${say(wishes[1])}${none}${twin}${spelt}${odd}`;
  const onPlatform =
    platform === 'absent'
      ? 'not on the platform'
      : `on the platform ${platform}, news ${shown[0]}, product ${shown[1]}`;
  return `${addressOf(at)}: ${inCrm}; ${onPlatform}`;
}

export function inWords(step: Step, story: Pick<Story, 'people'>): string {
  if (step.is === 'act') return `${actInWords(step.act, story)}.`;
  if (step.is === 'remap') return 'The mapping changes.';
  if (step.is === 'pause') return `${step.minutes} minutes pass.`;
  if (step.is === 'jump') return `Our clock jumps by ${step.seconds} s.`;
  if (step.is === 'backup') return 'A backup is made.';
  if (step.is === 'restore') return 'The backup is put back.';
  if (step.is === 'loss') return 'The snapshot is lost.';
  if (step.is !== 'run') return errandInWords(step, story);
  return runInWords(step, story);
}

function errandInWords(step: Errand, { people }: Pick<Story, 'people'>): string {
  if (step.is === 'approve' || step.is === 'reject') return decisionInWords(step);
  if (step.is === 'resolve') {
    const about = addressNamed({ who: step.who, moved: false }, people.length);
    return `${about} in ${step.channel} is resolved as an opt-${step.as}.`;
  }
  const person = addressNamed(step, people.length);
  if (step.is === 'reset') return `What is recorded of ${person} is to be read again.`;
  if (step.is === 'allow') return `${person} is allowed again.`;
  const { faults, killed, stopped, latency } = step;
  return `${[`${person} is forgotten`, ...metInWords({ faults, killed, stopped, latency })].join('; ')}.`;
}

function decisionInWords({ is, which, part }: Decision): string {
  const what = which === 0 ? 'What is held' : 'What was held before';
  const of = part ? `, if it matches ${JSON.stringify(part)},` : '';
  return `${what}${of} is ${is === 'approve' ? 'approved' : 'rejected'}.`;
}

function actInWords({ in: where, who, does }: Act, { people }: Pick<Story, 'people'>): string {
  if (where === 'templates') return `letter-${who % 2} ${does}`;
  const person = addressOf(who % Math.max(1, people.length));
  if (where === 'crm') return `In the CRM ${person} ${does}`;
  if (where === 'program') return `Another program: ${person} ${does}`;
  return `On the platform ${person} ${does}`;
}

function runInWords(step: RunStep, story: Pick<Story, 'people'>): string {
  const {
    mode,
    plans,
    only,
    reading,
    refused,
    faults,
    meanwhile,
    killed,
    stopped,
    rival,
    jump,
    eaten,
    latency,
    key,
    chosen,
    undoes,
  } = step;
  const more = [
    ...metInWords({ faults, killed, stopped, latency }),
    ...meanwhile.map(({ nth, act }) => `during request ${nth}: ${actInWords(act, story)}`),
    eaten !== undefined && `others eat the budget before request ${eaten}`,
    rival !== undefined && `a second process starts at touch ${rival}`,
    jump && `our clock jumps by ${jump.seconds} s at touch ${jump.touch}`,
    refused !== undefined && `the key is refused from request ${refused} on`,
    key !== 'everything' && `the key may do nothing${key === 'read' ? ' but read' : ''}`,
  ].filter((text) => text !== false && text !== undefined);
  const limit = chosen ? `, limited to ${listed(chosen, story)}` : '';
  if (undoes !== undefined) {
    const which =
      undoes === 0 ? 'The last run is undone' : `Run ${undoes} before the last is undone`;
    return `${[`${which}; the CRM is read ${reading}`, ...more].join('; ')}.`;
  }
  const what = `${plans ? 'plan' : 'run'}${only === undefined ? '' : ` of ${only} only`}`;
  return `${[`A ${mode} ${what}${limit}; the CRM is read ${reading}`, ...more].join('; ')}.`;
}

function listed(chosen: readonly number[], { people }: Pick<Story, 'people'>): string {
  return chosen.map((one) => addressOf(one % people.length)).join(' and ');
}

/** What a process of any kind may meet. */
function metInWords(met: Pick<RunStep, 'faults' | 'killed' | 'stopped' | 'latency'>): string[] {
  const { faults, killed, stopped, latency } = met;
  return [
    ...faults.map(({ nth, fault }) => `request ${nth} meets ${fault}`),
    ...(stopped === undefined ? [] : [`asked to stop at touch ${stopped}`]),
    ...(killed === undefined ? [] : [`killed at touch ${killed}`]),
    ...(latency === 0 ? ['without latency'] : []),
  ];
}
