import Database from 'better-sqlite3';

/**
 * Does what uses the database at `path`. What SQLite says of the disk or the file names no file: it
 * has the `path` then, as errors of the file system do.
 */
export function onDisk<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw named(error, path);
  }
}

/** The error, with the `path` where it has none. */
export function named(error: unknown, path: string): unknown {
  if (!(error instanceof Database.SqliteError) || 'path' in error) return error;
  return path === ':memory:' ? error : Object.assign(error, { path });
}
