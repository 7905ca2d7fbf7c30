/**
 * The classes of changes that guards count and may withhold. Configuration, approvals, `held` in
 * JSON, metrics, status and messages iterate over this table, so a new class is one row. A change
 * belongs to one class, whose id the snapshot stores: if an operation moves to another class, a
 * migration has to move the stored rows, or changes that await approval pass without it.
 */
import type { RecordTypeName } from './record.ts';

/** The records that a percentage refers to; engine/judge/guard-counts.ts counts them. */
export type PopulationName = 'owned' | 'known' | 'subscribed' | 'wanted';

type Exemption = 'creation' | 'first load' | 'single run';

interface GuardRow<Id extends string = string, Key extends string = string> {
  id: Id;
  configKey: Key;
  recordType: RecordTypeName;
  /**
   * The limit, unless the configuration states another. With `holdFor`, a duration after which
   * changes pass without approval, each channel is held separately, and incremental runs report
   * what remains held for the people they did not read.
   */
  defaults: { percent: number; floor: number; holdFor?: string };
  /** The operations that the class counts; `stated`: only if the CRM states them, or does not. */
  counts: { ops: readonly string[]; stated?: boolean };
  population: PopulationName;
  /**
   * The cases in which the class makes an exception.
   *
   *   creation      what the creation of a record requires immediately is not counted
   *   first load    a first load is not counted
   *   single run    events and `sync --person` are counted and never held, nor is the rest of a
   *                 creation
   */
  exempt: readonly Exemption[];
  /** Whether changes that an earlier run held count when new ones are judged. */
  countsHeld: boolean;
  /**
   * The patterns of an accident for which changes are held below the limit.
   *
   *   page    deletes of contacts with one mail domain, or of one page of CRM ids
   *   swap    many people turn to yes in the CRM while about as many turn to no: all classes with
   *           it are held, regardless of the limit and of `exempt`
   */
  shapes: readonly ('page' | 'swap')[];
  /** If at least this many are subscribed, a change to all is held, regardless of the floor. */
  holdsAllFrom: number;
  /**
   * If at least this many people would be opted in whose opt-out the CRM had stated, and they
   * are more than half of all such people, they are held, regardless of the limit and of `exempt`.
   */
  holdsWithdrawnFrom: number;
  /** The class whose held records this class excludes. It must come earlier in the table. */
  withoutHeldOf?: NoInfer<Id>;
  words: GuardWords;
}

interface GuardWords {
  /** What the class covers, and what a percentage refers to, in the configuration's schema. */
  schema: { what: string; of: string };
  /** States what would be done to the records. The message puts their number before this text. */
  would: string;
  /** The same if all that would be done is this operation. */
  wouldOnly?: Readonly<Record<string, string>>;
  undone: string;
  of: string;
  /** The usual cause; `causes`: more specific causes by the reason for holding. */
  cause: string;
  causes?: Readonly<Record<string, string>>;
  heading: string;
  planned: string;
  counted: string;
  /** A suffix for "The next run does it", if not every run can do it. */
  doneLater?: string;
}

function table<const Id extends string, const Key extends string>(
  rows: readonly GuardRow<Id, Key>[],
): readonly GuardRow<Id, Key>[] {
  return rows;
}

/** The classes in the order in which guards are applied and texts name them. */
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
    shapes: ['page'],
    holdsAllFrom: Infinity,
    holdsWithdrawnFrom: Infinity,
    words: {
      schema: {
        what: 'Deletes, and opt-outs for absence or a changed address',
        of: 'the people that this mirror owns',
      },
      would:
        'missing from the CRM, deleted there, or with another address, would be deleted or opted out',
      wouldOnly: {
        opt_out: 'missing from the CRM, deleted there, or with another address, would be opted out',
        delete: 'missing from the CRM, deleted there, or with another address, would be deleted',
      },
      undone: 'would be opted out or deleted to undo a run',
      of: 'people we own',
      cause: 'often an export that lacks people',
      causes: {
        week: 'often an export that lacks more people every day',
        domain: 'often a filter that was put on the export',
        block: 'often a page that is missing',
      },
      heading: 'Missing from the CRM, deleted there, or with another address',
      planned: 'to be deleted or opted out as missing from the CRM or deleted there',
      counted: 'deletes and opt-outs for absence',
      doneLater: ', deletes and opt-outs of people missing from the CRM the next full one',
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
    shapes: ['swap'],
    // With fewer subscribers, a guard cannot tell whether opting out all of them is an accident.
    holdsAllFrom: 4,
    holdsWithdrawnFrom: Infinity,
    words: {
      schema: { what: 'Opt-outs that the CRM states', of: 'the subscribed people' },
      would: 'would be opted out because the CRM says so',
      undone: 'would be opted out',
      of: 'people subscribed',
      cause: 'often a wrong column, or an export with other words in it',
      causes: { swap: 'often a column that was shifted by a row, or sorted alone' },
      heading: 'Opted out in the CRM',
      planned: 'to be opted out because the CRM says so',
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
    shapes: ['swap'],
    holdsAllFrom: Infinity,
    // With fewer people, a guard cannot tell an empty column from people who changed their minds.
    holdsWithdrawnFrom: 4,
    // Nobody is opted in while one of their opt-outs is held.
    withoutHeldOf: 'opt_out',
    words: {
      schema: { what: 'Opt-ins and creations', of: 'the people that the CRM wants in a channel' },
      would: 'would be created or opted in',
      undone: 'would be opted in again to undo a run',
      of: 'people the CRM wants',
      cause: 'often a column or a condition that changed its meaning',
      causes: {
        withdrawn: 'often a column of opt-outs that came empty',
        swap: 'often a column that was shifted by a row, or sorted alone',
      },
      heading: 'New in the CRM, or opted in there',
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
    shapes: [],
    holdsAllFrom: Infinity,
    holdsWithdrawnFrom: Infinity,
    words: {
      schema: {
        what: 'Updates and archives of templates',
        of: 'the templates that this mirror owns',
      },
      would: 'would be changed or archived',
      undone: 'would be changed back to undo a run',
      of: 'templates we own',
      cause: 'often a folder that was exchanged, or a build that wrote all of them anew',
      heading: 'Templates that changed or went',
      planned: 'to be changed or archived',
      counted: 'templates',
    },
  },
]);

export type Guard = (typeof guardClasses)[number];
export type GuardClass = Guard['id'];
export type GuardKey = Guard['configKey'];

export const guardNames: readonly GuardClass[] = guardClasses.map(({ id }) => id);

export const timedGuards: ReadonlySet<GuardClass> = new Set(
  guardClasses.filter(({ defaults }) => defaults.holdFor !== undefined).map(({ id }) => id),
);

const inOrder = guardClasses.toSorted((a, b) => (a.id < b.id ? -1 : 1));

export const guardRows = byGuard((_, row) => row);

/** Returns an object with one value for each class, in alphabetical order as in JSON. */
export function byGuard<T>(of: (guard: GuardClass, row: Guard) => T): Record<GuardClass, T> {
  return keyed(inOrder.map((row) => [row.id, of(row.id, row)]));
}

/** Returns an object with one value for each class, by configuration key. */
export function byGuardKey<T>(of: (row: Guard) => T): Record<GuardKey, T> {
  return keyed(inOrder.map((row) => [row.configKey, of(row)]));
}

function keyed<K extends string, T>(entries: readonly (readonly [K, T])[]): Record<K, T>;
function keyed<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(entries);
}

/** The limit above which changes are held; see domain/guards/guard-limits.ts. */
export interface Limit {
  /** The percentage of the records that the class covers (`population`), 0 to 100. */
  percent: number;
  /** The number of records that always pass. */
  floor: number;
  /** Only for classes with `holdFor`; in milliseconds. */
  holdForMs?: number | undefined;
}
