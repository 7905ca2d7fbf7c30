import type { Statements } from '../database/prepared-statements.ts';

/** A run as it is kept; times in milliseconds since the epoch. */
export interface KeptRun {
  id: string;
  mode: string;
  /** `running` until it has ended, for ever when its process was killed. */
  status: string;
  plan: string | null;
  startedAt: number;
  endedAt: number | null;
  /** The summary's JSON, without its problems. */
  summary: string | null;
}

/** The runs of the mirror: what started, how it ended. */
export interface Runs {
  start(run: { id: string; mode: string; at: number }): void;
  finish(run: { id: string; status: string; plan: string; summary: string; at: number }): void;
  /** One of which there is nothing to tell. */
  drop(id: string): void;
  get(id: string): KeptRun | undefined;
  /** The newest, newest first. */
  newest(count: number): KeptRun[];
  newestOf(mode: string): KeptRun | undefined;
  /**
   * The newest full run of all kinds that ended well, with both readings certified: by then the
   * platform was as the CRM wanted it.
   */
  proven(): KeptRun | undefined;
  /** Forgets runs that ended before `before`, in milliseconds since the epoch. */
  prune(before: number): void;
}

const columns = 'id, mode, status, plan, started_at startedAt, ended_at endedAt, summary';

export function runsIn(db: Statements): Runs {
  const start = db.prepare(
    `insert into run (id, mode, status, started_at) values (@id, @mode, 'running', @at)`,
  );
  const finish = db.prepare(
    `update run set status = @status, plan = @plan, summary = @summary, ended_at = @at where id = @id`,
  );
  const drop = db.prepare('delete from run where id = ?');
  const prune = db.prepare('delete from run where ended_at < ?');
  const get = db.prepare<[string], KeptRun>(`select ${columns} from run where id = ?`);
  const newest = db.prepare<[number], KeptRun>(
    `select ${columns} from run order by started_at desc, id desc limit ?`,
  );
  const newestOf = db.prepare<[string], KeptRun>(
    `select ${columns} from run where mode = ? order by started_at desc, id desc limit 1`,
  );
  const proven = db.prepare<[], KeptRun>(
    `select ${columns} from run
     where mode = 'full' and status in ('done', 'rejected') and summary ->> '$.only' is null
       and summary ->> '$.certificate.source' and summary ->> '$.certificate.platform'
     order by started_at desc, id desc limit 1`,
  );
  return {
    start: (run) => void start.run(run),
    finish: (run) => void finish.run(run),
    drop: (id) => void drop.run(id),
    get: (id) => get.get(id),
    newest: (count) => newest.all(count),
    newestOf: (mode) => newestOf.get(mode),
    proven: () => proven.get(),
    prune: (before) => void prune.run(before),
  };
}
