/** How fast a table of SQLite is read, and in how much memory: `npm run bench sql [rows]`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { ReadOutcome, ReadTask } from './sql/read.ts';
import { ask, begin } from './stage/child.ts';

const rows = Number(process.argv[2] ?? 1_000_000);
const folder = await mkdtemp(join(tmpdir(), 'bench-sql-'));
try {
  for (const count of [rows / 10, rows]) {
    const path = join(folder, `${count}.sqlite`);
    fill(path, count);
    const task: ReadTask = { url: `sqlite:${path}`, table: 'people' };
    const child = begin('sql/read', task);
    const read = await ask<ReadOutcome>(child);
    child.kill();
    console.log(
      `${read.rows} rows, ${Math.round((read.rows / read.ms) * 1000)} rows/s, ` +
        `peak ${Math.round(read.peakMb)} MB, complete: ${read.complete}`,
    );
  }
} finally {
  await rm(folder, { recursive: true });
}

function fill(path: string, count: number): void {
  const db = new Database(path);
  db.exec(
    `create table people (id integer primary key, email text, name text, newsletter text,
       deleted_at text, updated_at text);
     create index people_updated_at on people (updated_at);`,
  );
  db.prepare(
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
     insert into people select i, 'person' || i || '@example.com', 'Person ' || i, 'yes', null,
       datetime('2026-01-01', '+' || i || ' seconds') from n`,
  ).run(count);
  db.close();
}
