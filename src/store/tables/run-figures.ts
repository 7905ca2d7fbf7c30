/**
 * Keeps the history that plots are drawn from: one row for each run about all people and for each
 * route that it used, and one for each day and origin of opt-outs. Times are in milliseconds since
 * the epoch.
 */
import { storedJson } from '../../domain/stored-json.ts';
import type { ChangeTally } from './journal.ts';
import type { Key } from '../../domain/record.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { inRange, type RecordRange } from '../database/key-range.ts';

type Counts = Readonly<Record<string, number>>;

export interface Point {
  at: number;
  mode: string;
  ms: number;
  /** The number of requests that the rate limit refused (429). */
  refused: number;
  /** The largest share of a route's limit that the run has used, 0 to 1; null if unknown. */
  used: number | null;
  /** The age of the last proven run; null if there is none. */
  proofMs: number | null;
  changed: number;
}

export interface RunFigures extends Point {
  run: string;
  mode: string;
  requests: number;
  changes: readonly ChangeTally[];
  /** The number of people subscribed by channel; null if they were not counted. */
  people: Counts | null;
}

/** What a run used of the limit of a route: `sent` and `most` are requests in a window. */
export interface RouteFigures {
  at: number;
  route: string;
  sent: number;
  most: number;
  windowMs: number;
}

/** Who asked for an opt-out: the CRM, the person on the platform, an absence, or an operator. */
export type OptOutOrigin = 'stated' | 'platform' | 'absence' | 'operator';

/** A number of opt-outs on one day (UTC), such as 2026-03-01. */
export interface OptOutDay {
  day: string;
  origin: OptOutOrigin;
  n: number;
}

/** The part of the history that plots show, and the time that one point stands for. */
interface Part {
  since: number;
  stepMs: number;
}

const tallies = storedJson<readonly ChangeTally[]>('the changes of a run');
const peopleCounts = storedJson<Counts>('the figures of a run');

const dayOf = (column: string): string => `strftime('%Y-%m-%d', ${column} / 1000, 'unixepoch')`;

/** The number of the point that a row belongs to. Parameters are bound as REAL. */
const bucket = 'cast((at - @since) / @stepMs as integer)';
/** The middle of it, at which what several rows have in common is drawn. */
const middle = `@since + (${bucket} + 0.5) * @stepMs`;

/** Selects the opt-outs of these people `r` that were made on the platform, with their time. */
const madeThere = (these: string): string =>
  `select r.key, c.key channel, c.value ->> '$.made.by' at, c.value ->> '$.made.after' after
     from recorded r, json_each(r.body, '$.channels') c
     where ${these} and instr(r.body, '"made"')
   union all
   select r.key, '', r.body ->> '$.left.by', r.body ->> '$.left.after' from recorded r
     where ${these} and instr(r.body, '"left":{')`;

export function figuresIn(db: Statements) {
  const add = db.run<Omit<RunFigures, 'people'> & { people: string | null }>(
    `insert or replace into run_figures
       (run, at, mode, ms, requests, refused, used, proof_ms, changed, changes, people)
     values (@run, @at, @mode, @ms, @requests, @refused, @used, @proofMs, @changed, @changes,
       @people)`,
  );
  const old = ['run_figures where at < ?', 'route_figures where at < ?'];
  const prunes = [...old, `opt_out_day where day < ${dayOf('?')}`].map((these) =>
    db.run<[before: number]>(`delete from ${these}`),
  );
  return {
    add: ({ people, ...figures }: RunFigures) =>
      add({ ...figures, people: people && peopleCounts.encode(people) }),
    addRoute: db.run<RouteFigures>(
      'insert or replace into route_figures values (@at, @route, @sent, @most, @windowMs)',
    ),
    changesOf: db.one<[run: string], readonly ChangeTally[], { changes: string }>(
      'select changes from run_figures where run = ?',
      ({ changes }) => tallies.decode(changes),
    ),
    /** Of the newest runs of a mode that changed anything, newest first. */
    lastChanges: db.all<
      [mode: string, count: number],
      { run: string; changes: RunFigures['changes'] },
      { run: string; changes: string }
    >(
      `select run, changes from run_figures where mode = ? and changed > 0
       order by at desc, run desc limit ?`,
      ({ run, changes }) => ({ run, changes: tallies.decode(changes) }),
    ),
    addOptOuts: db.run<OptOutDay>(
      `insert into opt_out_day (day, origin, n) values (@day, @origin, @n)
       on conflict (day, origin) do update set n = n + excluded.n`,
    ),
    /** Counts the acknowledged opt-outs of a run by the day of `at`. */
    optOutsOf: db.all<{ run: string; at: number }, OptOutDay>(
      // Opt-outs are the first phase of a run, so the other changes are not looked at.
      `select ${dayOf('@at')} day, count(*) n, case
           when why ->> '$.rule' in ('settled-out', 'undo') then 'operator'
           when coalesce(body ->> '$.cause', 'stated') = 'stated' then 'stated'
           else 'absence' end origin
       from change indexed by change_by_run
       where run = @run and phase = 0 and kind = 'contact' and op = 'opt_out' and state = 'acked'
       group by origin`,
    ),
    subscribed: db.all<RecordRange, { channel: string; n: number }>(
      `select c.key channel, count(*) n from recorded r, json_each(r.body, '$.channels') c
       where ${inRange('r')} and c.value ->> '$.is' = 'opt_in' and not instr(r.body, '"left":{')
       group by c.key`,
    ),
    /** Counts the opt-outs of a range that were made on the platform and seen since a time. */
    madeSince: db.all<RecordRange & { since: number }, OptOutDay>(
      `select ${dayOf('at')} day, 'platform' origin, count(*) n from (${madeThere(inRange('r'))})
       where at > @since and after is not null group by day`,
    ),
    /** Lists them of all people, the newest first; channel '' for all mail. It reads the table. */
    madeThere: db.all<
      { since: number; before: number; count: number },
      { key: Key; channel: string; at: number }
    >(
      `select key, channel, at from (${madeThere("r.kind = 'contact'")})
       where at >= @since and at < @before and after is not null
       order by at desc, key limit @count`,
    ),
    /** Returns when a full run last counted the opt-outs that were made on the platform. */
    countedAt: db.value<[], number>(
      `select max(at) from run_figures where people is not null and mode = 'full'`,
    ),
    firstSince: db.value<[since: number], number>('select min(at) from run_figures where at >= ?'),
    /** Returns the largest values of the runs of a mode in each step. */
    points: db.all<Part, Point>(
      `select ${middle} at, mode, max(ms) ms, max(refused) refused, max(used) used,
         max(proof_ms) proofMs, max(changed) changed
       from run_figures where at >= @since group by ${bucket}, mode order by at`,
    ),
    /** Returns the largest values of each route in each step; another window is another route. */
    routes: db.all<Part, RouteFigures>(
      `select ${middle} at, route, max(sent) sent, max(most) most, window_ms windowMs
       from route_figures where at >= @since group by ${bucket}, route, window_ms order by at`,
    ),
    people: db.all<Part, { at: number; people: Counts }, { at: number; people: string }>(
      `select max(at) at, people from run_figures where at >= @since and people is not null
       group by ${bucket} order by at`,
      ({ at, people }) => ({ at, people: peopleCounts.decode(people) }),
    ),
    /** Returns the opt-outs of so many days each, with the first of them. */
    optOuts: db.all<[days: number, since: number], OptOutDay>(
      `with part (days) as (values (cast(? as integer)))
       select date(unixepoch(day) / 86400 / days * days * 86400, 'unixepoch') day, origin, sum(n) n
       from opt_out_day, part where day >= ${dayOf('?')} group by 1, origin order by 1, origin`,
    ),
    prune: (before: number) => prunes.forEach((prune) => prune(before)),
  };
}
