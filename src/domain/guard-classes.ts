/**
 * The classes of changes that guards count and may hold back. Configuration, approvals, `held` in
 * JSON, metrics, status and texts iterate over this table: a new class is one row.
 */
import type { RecordTypeName } from './record.ts';

/** The records that a percentage is of; engine/guard/guard-population.ts counts them. */
export type PopulationName = 'owned' | 'known' | 'subscribed' | 'wanted';

/** See `exempt`. */
type Exemption = 'creation' | 'first load' | 'single run';

interface GuardRow<Id extends string = string, Key extends string = string> {
  id: Id;
  /** Its key under `guards` in the configuration. */
  configKey: Key;
  recordType: RecordTypeName;
  /**
   * Its limit unless the configuration states another. `holdFor`, a duration: after that what is
   * held passes without approval. Then each channel is held for itself, and runs that read only
   * some people report what stays held of the others.
   */
  defaults: { percent: number; floor: number; holdFor?: string };
  /** The operations that it counts; `stated`: only those (or none of those) that the CRM states. */
  counts: { ops: readonly string[]; stated?: boolean };
  population: PopulationName;
  /**
   * creation      what the creation of a record calls for at once is not counted
   * first load    a first load is not counted
   * single run    events and `one` are counted and never held, and neither is a creation's rest
   */
  exempt: readonly Exemption[];
  /** Whether what an earlier run held counts in the run that judges new changes. */
  countsHeld: boolean;
  /** Whether the deletes of one mail domain, or of one page of CRM ids, are held too. */
  shapes: boolean;
  /** Holds, whatever the floor, everybody who is subscribed, if they are at least that many. */
  holdsAllFrom: number;
  /** The class whose held records are left out of this one; it stands earlier in the table. */
  withoutHeldOf?: NoInfer<Id>;
  words: GuardWords;
}

interface GuardWords {
  /** Describes the class in the schema of the configuration, and what a percentage is of. */
  schema: { what: string; of: string };
  /** What would be done to so many records, which are named before. */
  would: string;
  /** What `percent` is of. */
  of: string;
  /** What it often comes from; `causes`: where a reason for holding tells more. */
  cause: string;
  causes?: Readonly<Record<string, string>>;
  /** What is planned for the records that are held. */
  planned: string;
  /** What is counted. */
  counted: string;
  /** Added to "The next run does it", where not every run can. */
  doneLater?: string;
}

/** Infers the ids and configuration keys of the rows. */
function table<const Id extends string, const Key extends string>(
  rows: readonly GuardRow<Id, Key>[],
): readonly GuardRow<Id, Key>[] {
  return rows;
}

/** In the order in which the guards are asked, and in which texts name the classes. */
export const guardClasses = table([
  {
    id: 'delete',
    configKey: 'deletes',
    recordType: 'contact',
    defaults: { percent: 10, floor: 10 },
    counts: { ops: ['delete', 'opt_out'], stated: false },
    population: 'owned',
    exempt: [],
    countsHeld: true,
    shapes: true,
    holdsAllFrom: Infinity,
    words: {
      schema: {
        what: 'Deletes, and opt-outs for absence or a changed address',
        of: 'the people that this mirror owns',
      },
      would: 'who left the CRM, or an address there, would be deleted or opted out',
      of: 'people we own',
      cause: 'often an export that lacks people',
      causes: {
        week: 'often an export that lacks more people every day',
        domain: 'often a filter that was put on the export',
        block: 'often a page that got lost on the way',
      },
      planned: 'to be deleted or opted out for absence',
      counted: 'deletes and opt-outs for absence',
      doneLater: ', what is for absence the next full one',
    },
  },
  {
    id: 'opt_out',
    configKey: 'optOuts',
    recordType: 'contact',
    defaults: { percent: 30, floor: 20, holdFor: '72h' },
    counts: { ops: ['opt_out'], stated: true },
    population: 'subscribed',
    exempt: ['creation', 'single run'],
    countsHeld: false,
    shapes: false,
    // With fewer subscribers nobody can tell whether it is an accident.
    holdsAllFrom: 4,
    words: {
      schema: { what: 'Opt-outs that the CRM states', of: 'the subscribed people' },
      would: 'would be opted out on the word of the CRM',
      of: 'people subscribed',
      cause: 'often a wrong column, or an export with other words in it',
      planned: 'to be opted out on the word of the CRM',
      counted: 'stated opt-outs',
    },
  },
  {
    id: 'opt_in',
    configKey: 'optIns',
    recordType: 'contact',
    defaults: { percent: 20, floor: 100 },
    counts: { ops: ['create', 'opt_in'] },
    population: 'wanted',
    exempt: ['first load'],
    countsHeld: true,
    shapes: false,
    holdsAllFrom: Infinity,
    // Nobody is opted in while an opt-out of theirs is held.
    withoutHeldOf: 'opt_out',
    words: {
      schema: { what: 'Opt-ins and creations', of: 'the people that the CRM wants in a channel' },
      would: 'would be created or opted in',
      of: 'people the CRM wants',
      cause: 'often a column or a condition that changed its meaning',
      planned: 'to be created or opted in',
      counted: 'opt-ins',
    },
  },
  {
    id: 'template',
    configKey: 'templates',
    recordType: 'template',
    defaults: { percent: 20, floor: 3 },
    counts: { ops: ['update', 'archive'] },
    population: 'known',
    exempt: ['creation'],
    countsHeld: true,
    shapes: false,
    holdsAllFrom: Infinity,
    words: {
      schema: {
        what: 'Updates and archives of templates',
        of: 'the templates that this mirror owns',
      },
      would: 'would be changed or archived',
      of: 'templates we own',
      cause: 'often a folder that was exchanged, or a build that wrote all of them anew',
      planned: 'to be changed or archived',
      counted: 'templates',
    },
  },
]);

export type Guard = (typeof guardClasses)[number];
export type GuardClass = Guard['id'];
export type GuardKey = Guard['configKey'];

export const guardNames: readonly GuardClass[] = guardClasses.map(({ id }) => id);

/** The classes with `holdFor`. */
export const timedGuards: ReadonlySet<GuardClass> = new Set(
  guardClasses.filter(({ defaults }) => defaults.holdFor !== undefined).map(({ id }) => id),
);

const inOrder = guardClasses.toSorted((a, b) => (a.id < b.id ? -1 : 1));

export const guardRows = byGuard((_, row) => row);

/** Gives one value for each class, in alphabetical order as in JSON. */
export function byGuard<T>(of: (guard: GuardClass, row: Guard) => T): Record<GuardClass, T> {
  return keyed(inOrder.map((row) => [row.id, of(row.id, row)]));
}

/** The same by configuration key. */
export function byGuardKey<T>(of: (row: Guard) => T): Record<GuardKey, T> {
  return keyed(inOrder.map((row) => [row.configKey, of(row)]));
}

function keyed<K extends string, T>(entries: readonly (readonly [K, T])[]): Record<K, T>;
function keyed<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(entries);
}

/** When so much is held back; see engine/report/guard-rules.ts. */
export interface Limit {
  /** Of the records that the class is about (`population`), 0 to 100. */
  percent: number;
  /** That many always pass. */
  floor: number;
  /** Only of classes with `holdFor`, in milliseconds. */
  holdForMs?: number | undefined;
}
