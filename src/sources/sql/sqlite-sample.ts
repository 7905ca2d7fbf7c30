/** Reads the table of people in a SQLite file, before a configuration names it. */
import Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';

/** The table with the most email addresses. */
export interface TableSample {
  table: string;
  rows: { where: string; value: Row }[];
}

const mostRows = 100_000;

type Row = Record<string, unknown>;

const isAddress = (value: unknown): boolean =>
  typeof value === 'string' && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value.trim());

/** Reads at most 100,000 rows. Throws Invalid if no table of the file holds an address. */
export function sampleSqlite(path: string): TableSample {
  const db = openFile(path);
  try {
    const names = db
      .prepare<[], { name: string }>(
        `select name from sqlite_schema where type in ('table', 'view') and name not like 'sqlite_%'`,
      )
      .all();
    const samples = names.map(({ name: table }) => {
      const quoted = `"${table.replaceAll('"', '""')}"`;
      const select = db.prepare<[number], Row>(`select * from ${quoted} limit ?`);
      const rows = select.all(mostRows).map((value, at) => ({ where: `row ${at + 1}`, value }));
      const withAddress = rows.filter(({ value }) => Object.values(value).some(isAddress));
      return { sample: { table, rows }, addresses: withAddress.length };
    });
    const [best] = samples.toSorted((a, b) => b.addresses - a.addresses);
    if (best && best.addresses > 0) return best.sample;
    throw new Invalid(`${path}: no table holds email addresses`, { fix: 'name another file' });
  } finally {
    db.close();
  }
}

function openFile(path: string): Database.Database {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    db.prepare('select count(*) from sqlite_schema').get();
    return db;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new Invalid(`${path}: the file cannot be read as a SQLite database`, {
      fix: 'name the right file, and make it readable',
    });
  }
}
