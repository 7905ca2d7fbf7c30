/**
 * What hardly ever happens by chance, since one thing has to follow another: what is done about one
 * person, or one template, with a run after each line.
 */
import type { Act } from './actions.ts';

type CrmAct = Extract<Act, { in: 'crm' }>['does'];
type PlatformAct = Extract<Act, { in: 'platform' }>['does'];
type TemplateAct = Extract<Act, { in: 'templates' }>['does'];

type PlotAct = Act extends infer One ? (One extends Act ? Omit<One, 'who'> : never) : never;

const crm = (does: CrmAct) => ({ in: 'crm', does }) as const;
const platform = (does: PlatformAct) => ({ in: 'platform', does }) as const;
const template = (does: TemplateAct) => ({ in: 'templates', does }) as const;

const newcomer = [crm('is new'), crm('is flagged no longer'), crm('wants mail again')];

/** In the end the newsletter reaches the person, and the CRM wants that. */
export const member = [
  ...newcomer,
  crm('wants the newsletter'),
  platform('comes back to all mail'),
  platform('signs up for the newsletter'),
];

/**
 * loss: the snapshot is lost. key: the run after the line is called with another key.
 * forget, allow: under the first address of the person; allow moved: under the other.
 */
type Beside = 'loss' | 'key' | 'forget' | 'allow' | 'allow moved';

/** Lines of acts; each is done by, or to, the same. */
export type Plot = readonly (readonly (PlotAct | Beside)[])[];

export const plots: readonly Plot[] = [
  [member, [crm('forbids the newsletter')], [crm('wants the newsletter')]],
  [
    member,
    [crm('forbids the newsletter')],
    [platform('is taken out of the newsletter')],
    [crm('wants the newsletter')],
  ],
  [
    [...newcomer, crm('says nothing of the newsletter'), crm('wants the product mail')],
    [],
    [crm('wants the newsletter')],
  ],
  [member, [platform('is taken out of the newsletter')], []],
  [member, [platform('leaves the newsletter')], [platform('is taken out of the newsletter')]],
  [member, [platform('leaves the newsletter')], [crm('states a new will')]],
  [member, [platform('is deleted')], []],
  [member, [platform('is deleted')], ['loss'], []],
  [member, [platform('is deleted')], [crm('moves to a new address')]],
  [member, [platform('is deleted'), 'key']],
  [member, [platform('leaves the newsletter')], [platform('is deleted')]],
  [member, [platform('leaves the newsletter')], [crm('moves to a new address')]],
  [member, [platform('unsubscribes from everything')], [crm('moves to a new address')]],
  [member, [crm('is flagged as deleted')], [crm('is flagged no longer')]],
  [
    member,
    [platform('leaves the newsletter')],
    [crm('is flagged as deleted')],
    [crm('is flagged no longer')],
  ],
  [member, [platform('leaves the newsletter')], [platform('is deleted'), 'loss'], []],
  [member, [crm('has a double that forbids the newsletter')], [crm('loses its double')]],
  [
    member,
    [crm('has a double that forbids the newsletter')],
    [crm('loses its double'), crm('moves to a new address')],
  ],
  [member, [platform('is given another address')], [crm('forbids the newsletter')]],
  [
    member,
    [platform('is given another address')],
    [crm('has a double that forbids the newsletter'), crm('leaves its double behind')],
  ],
  [member, [crm('moves to a new address'), crm('forbids the newsletter')]],
  [member, ['forget'], [crm('states a new will')], ['allow']],
  [member, ['forget'], [crm('moves to a new address')], ['allow moved']],
  [member, [platform('leaves the newsletter')], ['forget'], ['allow']],
  [
    [template('is new in the source')],
    [template('is edited on the platform')],
    [template('changes in the source')],
  ],
  [
    [template('is new in the source')],
    [template('is deleted on the platform')],
    [template('changes in the source')],
  ],
];
