import type { Database } from 'better-sqlite3';

/** The runs of the mirror: what started, how it ended. */
export interface Runs {
  start(run: { id: string; mode: string; at: number }): void;
  finish(run: { id: string; status: string; plan: string; summary: string; at: number }): void;
  /** Forgets runs that ended before `before`, in milliseconds since the epoch. */
  prune(before: number): void;
}

export function runsIn(db: Database): Runs {
  const start = db.prepare(
    `insert into run (id, mode, status, started_at) values (@id, @mode, 'running', @at)`,
  );
  const finish = db.prepare(
    `update run set status = @status, plan = @plan, summary = @summary, ended_at = @at where id = @id`,
  );
  const prune = db.prepare('delete from run where ended_at < ?');
  return {
    start: (run) => void start.run(run),
    finish: (run) => void finish.run(run),
    prune: (before) => void prune.run(before),
  };
}
