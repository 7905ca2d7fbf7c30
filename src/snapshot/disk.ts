import Database from 'better-sqlite3';

/**
 * Does what uses the database at `path`. What SQLite says of the disk or the file names no file: it
 * has the `path` then, as errors of the file system do.
 */
export function onDisk<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Database.SqliteError) || 'path' in error) throw error;
    throw path === ':memory:' ? error : Object.assign(error, { path });
  }
}
