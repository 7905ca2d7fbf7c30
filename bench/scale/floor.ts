/** What no reading of a CSV file can do without: parsing it, one keyed insert a row, one join. */
import { createReadStream } from 'node:fs';
import Database from 'better-sqlite3';
import { parse } from 'csv-parse';
import { given } from '../stage/child.ts';

export interface FloorTask {
  csv: string;
  snapshot: string;
}

const { csv, snapshot }: FloorTask = JSON.parse(given());
const beganMs = performance.now();
const db = new Database(snapshot, { readonly: true });
db.exec('create temp table staged (key text primary key, fingerprint text) without rowid');
const insert = db.prepare('insert into temp.staged values (?, ?)');
db.exec('begin');
for await (const row of createReadStream(csv).pipe(parse({ from_line: 2 }))) {
  insert.run(row[1], row[4]);
}
db.exec('commit');
const join = db.prepare<[], { n: number }>(
  `select count(*) n from temp.staged s
     join recorded r on r.kind = 'contact' and r.key = s.key where r.desired is not s.fingerprint`,
);
join.get();
db.close();
process.send?.(performance.now() - beganMs);
