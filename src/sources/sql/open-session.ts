import { Invalid } from '../../domain/errors.ts';
import { smallText } from '../shared/files/local-file.ts';
import { placeOf } from './drivers/database-address.ts';
import type { ServerAccess } from './drivers/server-connection.ts';
import { openMysql, writeMysql } from './drivers/mysql.ts';
import type { SqlOptions } from './options.ts';
import { openPostgres, writePostgres } from './drivers/postgres.ts';
import type { Opening, Session, Writing } from './drivers/database-session.ts';
import { openSqlite, writeSqlite } from './drivers/sqlite.ts';

export type Around = Omit<Opening, 'timeoutMs'>;

export type Reach = Pick<SqlOptions, 'url' | 'password' | 'ca' | 'allowPlain' | 'timeoutMs'>;

/** Opens a session to read, encrypted unless it stays on this machine or options allow plain. */
export async function open(reach: Reach, around: Around): Promise<Session> {
  around.signal.throwIfAborted();
  const opening = { ...around, timeoutMs: reach.timeoutMs };
  const access = findAccess(reach);
  if (access.system === 'sqlite') return openSqlite(access.path, opening);
  return access.system === 'postgres' ? openPostgres(access, opening) : openMysql(access, opening);
}

/** Opens a session to write, under the same conditions. */
export async function openToWrite(reach: Reach, around: Around): Promise<Writing> {
  around.signal.throwIfAborted();
  const opening = { ...around, timeoutMs: reach.timeoutMs };
  const access = findAccess(reach);
  if (access.system === 'sqlite') return writeSqlite(access.path, opening);
  return access.system === 'postgres'
    ? writePostgres(access, opening)
    : writeMysql(access, opening);
}

function findAccess(reach: Reach): ServerAccess | { system: 'sqlite'; path: string } {
  const place = placeOf(reach.url);
  if ('reason' in place) {
    const { reason, fix } = place;
    throw new Invalid(`url of the source ${reason}`, { fix, code: 'database-access' });
  }
  if (place.system === 'sqlite') return place;
  const { allowPlain, ca: file } = reach;
  const isPlain = file === undefined && !place.encrypted && (place.local || allowPlain);
  const ca = file === undefined ? {} : { ca: smallText(file) };
  return { ...place, password: reach.password ?? place.password, tls: isPlain ? undefined : ca };
}
