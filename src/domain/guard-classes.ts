/**
 * The classes of changes that guards count and may hold. Everything about guards goes through this
 * table: a class is one row of it.
 */
import type { RecordTypeName } from './record.ts';

/**
 * delete: what is done to people for their absence, deletes and opt-outs. opt_out: opt-outs that
 * the CRM states. opt_in: what brings people in, creations too. template: changes of templates that
 * are ours, not new ones.
 */
export type GuardClass = 'delete' | 'opt_out' | 'opt_in' | 'template';

interface GuardRow {
  kind: RecordTypeName;
  /** Its key under `guards` in the configuration. */
  config: 'deletes' | 'optOuts' | 'optIns' | 'templates';
  /** Whether a first load passes without being counted. */
  exemptsFirstLoad: boolean;
  /** Whether what a creation calls for at once passes likewise: it belongs to that. */
  exemptsCreated: boolean;
  /**
   * Whether it is about the CRM's own word for people to be left alone. Then each channel is held
   * for itself and for a limited time, what is held counts no more, and events and `one` are
   * counted but never held.
   */
  isStated: boolean;
  /** From how many people on it is held, whatever the floor, where they are all there are. */
  everybodyFrom: number;
  words: {
    /** What would be done to so many, which is named before. */
    would: string;
    /** What `percent` is of. */
    of: string;
    /** What it often comes from. */
    cause: string;
    /** What is planned for those that are held. */
    planned: string;
    /** What is counted. */
    counted: string;
  };
}

/** In the order in which the guards are asked: somebody whose opt-out is held is not opted in. */
export const guardNames: readonly GuardClass[] = ['delete', 'opt_out', 'opt_in', 'template'];

export const guardRows: Readonly<Record<GuardClass, GuardRow>> = {
  delete: {
    kind: 'contact',
    config: 'deletes',
    exemptsFirstLoad: false,
    exemptsCreated: false,
    isStated: false,
    everybodyFrom: Infinity,
    words: {
      would: 'who left the CRM, or an address there, would be deleted or opted out',
      of: 'people we own',
      cause: 'often an export that lacks people',
      planned: 'to be deleted or opted out for absence',
      counted: 'deletes and opt-outs for absence',
    },
  },
  opt_out: {
    kind: 'contact',
    config: 'optOuts',
    exemptsFirstLoad: false,
    exemptsCreated: true,
    isStated: true,
    // Of fewer nobody can tell whether it is an accident.
    everybodyFrom: 4,
    words: {
      would: 'would be opted out on the word of the CRM',
      of: 'people subscribed',
      cause: 'often a wrong column, or an export with other words in it',
      planned: 'to be opted out on the word of the CRM',
      counted: 'stated opt-outs',
    },
  },
  opt_in: {
    kind: 'contact',
    config: 'optIns',
    exemptsFirstLoad: true,
    exemptsCreated: false,
    isStated: false,
    everybodyFrom: Infinity,
    words: {
      would: 'would be created or opted in',
      of: 'people the CRM wants',
      cause: 'often a column or a condition that changed its meaning',
      planned: 'to be created or opted in',
      counted: 'opt-ins',
    },
  },
  template: {
    kind: 'template',
    config: 'templates',
    exemptsFirstLoad: false,
    exemptsCreated: true,
    isStated: false,
    everybodyFrom: Infinity,
    words: {
      would: 'would be changed or archived',
      of: 'templates we own',
      cause: 'often a folder that was exchanged, or a build that wrote all of them anew',
      planned: 'to be changed or archived',
      counted: 'templates',
    },
  },
};

/** One value for each class. */
export function byGuard<T>(of: (guard: GuardClass) => T): Record<GuardClass, T> {
  return {
    delete: of('delete'),
    opt_in: of('opt_in'),
    opt_out: of('opt_out'),
    template: of('template'),
  };
}

/** 1 person, 12 people, 3 templates. */
export function countWords(guard: GuardClass, n: number): string {
  const [one, many] =
    guardRows[guard].kind === 'contact' ? ['person', 'people'] : ['template', 'templates'];
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}
