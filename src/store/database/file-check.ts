/**
 * Checks a whole database file in a thread of its own: the check of a large one takes seconds, in
 * which a worker has other mirrors to serve. The thread is this module, too.
 */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { z } from 'zod';

const task = z.object({ checkedFile: z.string() });
const answer = z.object({ found: z.string(), code: z.string() });

const { data } = task.safeParse(isMainThread ? undefined : workerData);
if (data) parentPort?.postMessage(check(data.checkedFile), []);

/**
 * Compares every index of the database with its table (integrity_check). Throws SqliteError if the
 * file is damaged. Nothing else may use the file.
 */
export async function checkFile(path: string): Promise<void> {
  const workerData: z.infer<typeof task> = { checkedFile: path };
  const worker = new Worker(new URL(import.meta.url), { workerData });
  const [{ found, code }] = z.tuple([answer]).parse(await once(worker, 'message'));
  if (found !== 'ok') throw new Database.SqliteError(found, code);
}

function check(path: string): z.infer<typeof answer> {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    try {
      const found = String(db.pragma('integrity_check(1)', { simple: true }));
      return { found, code: 'SQLITE_CORRUPT' };
    } finally {
      db.close();
    }
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    return { found: error.message, code: error.code };
  }
}
