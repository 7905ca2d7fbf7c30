/** From the options to a session with the database they name. */
import { readFile } from 'node:fs/promises';
import { Invalid } from '../../model/errors.ts';
import { unreadable } from '../file.ts';
import { placeOf } from './address.ts';
import type { Access } from './line.ts';
import { openMysql } from './mysql.ts';
import type { SqlOptions } from './options.ts';
import { openPostgres } from './postgres.ts';
import type { Opening, Session } from './session.ts';
import { openSqlite } from './sqlite.ts';

/** Encrypted, unless it stays on this machine or the options allow it. */
export async function open(
  options: SqlOptions,
  { signal, clock }: Pick<Opening, 'signal' | 'clock'>,
): Promise<Session> {
  signal.throwIfAborted();
  const place = placeOf(options.url);
  if (typeof place === 'string') throw new Invalid(`url of the source ${place}`);
  const { timeoutMs, allowPlain, ca: file } = options;
  const opening = { signal, clock, timeoutMs };
  if (place.system === 'sqlite') return openSqlite(place.path, opening);
  const isPlain = file === undefined && !place.encrypted && (place.local || allowPlain);
  const ca = file === undefined ? {} : { ca: await authorityIn(file) };
  const access: Access = {
    ...place,
    password: options.password ?? place.password,
    tls: isPlain ? undefined : ca,
  };
  return place.system === 'postgres' ? openPostgres(access, opening) : openMysql(access, opening);
}

async function authorityIn(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw unreadable(file, error);
  });
}
