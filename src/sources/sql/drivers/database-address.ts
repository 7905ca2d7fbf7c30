/** Parses the address of a database (the option `url`). */
import type { Fault } from '../../../domain/record.ts';
import { fault } from '../../../domain/schema-fault.ts';
import { isLoopback } from '../../../domain/values/config-value.ts';

export type DatabasePlace = { system: 'sqlite'; path: string } | ServerPlace;

export interface ServerPlace {
  system: 'postgres' | 'mysql';
  /** A host. For a socket, its folder (PostgreSQL) or file (MySQL), which begins with a slash. */
  host: string;
  port: number;
  user: string;
  /** The password; undefined if the address has none. */
  password: string | undefined;
  database: string;
  /** Whether traffic to the server never leaves this machine. */
  local: boolean;
  /** Whether the address itself demands encryption. */
  encrypted: boolean;
}

const systems: Record<string, { system: ServerPlace['system']; port: number }> = {
  'postgres:': { system: 'postgres', port: 5432 },
  'postgresql:': { system: 'postgres', port: 5432 },
  'mysql:': { system: 'mysql', port: 3306 },
  'mariadb:': { system: 'mysql', port: 3306 },
};

const none = fault(
  'is no address of a database',
  'write postgres://USER@HOST/DATABASE, mysql://… or sqlite:FILE; ' +
    'a password with other than letters and digits as password',
);

/** Returns the location, or the fault in the address, which quotes no part of it. */
export function placeOf(address: string): DatabasePlace | Fault {
  const file = fileOf(address);
  if (file !== undefined) return file === '' ? none : { system: 'sqlite', path: file };
  const url = URL.parse(address);
  const known = systems[url?.protocol ?? ''];
  if (!url || !known) return none;
  const params = readParameters(url);
  if ('reason' in params) return params;
  let parts = [url.hostname, url.username, url.password, url.pathname.slice(1)];
  try {
    parts = parts.map(decodeURIComponent);
  } catch {
    return fault('holds a % that stands for itself', 'write it as %25');
  }
  const [name = '', user = '', password = '', database = ''] = parts;
  const host = params.host ?? name.replace(/^\[(.*)\]$/, '$1');
  if (host === '') return fault('names no host', 'write it after the user and an @');
  if (user === '')
    return fault('names no user', 'write it before the host: postgres://USER@HOST/DATABASE');
  if (database === '' || database.includes('/')) {
    return fault('names no database', 'write it after the host: postgres://USER@HOST/DATABASE');
  }
  return {
    system: known.system,
    host,
    port: url.port === '' ? known.port : Number(url.port),
    user,
    password: password === '' ? undefined : password,
    database,
    local: host.startsWith('/') || isLoopback(address),
    encrypted: params.encrypted,
  };
}

/** Returns the file in an SQLite address, or undefined for another database. */
function fileOf(address: string): string | undefined {
  return /^sqlite:(?:\/\/)?(.*)$/is.exec(address)?.[1];
}

export function absoluteAddress(address: string, absolute: (path: string) => string): string {
  const file = fileOf(address);
  return file === undefined ? address : `sqlite:${absolute(file)}`;
}

function readParameters(url: URL): { host?: string; encrypted: boolean } | Fault {
  const found: { host?: string; encrypted: boolean } = { encrypted: false };
  if (url.hash) return fault('holds a #', 'write a password with one as password');
  for (const [name, value] of url.searchParams) {
    if (name === 'host' && value.startsWith('/')) found.host = value;
    else if (/^ssl-?mode$/.test(name) && /^(require|verify)/i.test(value)) found.encrypted = true;
    else if (/^ssl-?mode$/.test(name)) {
      const fix = 'remove sslmode, or add allowPlain: true instead of it';
      return fault('does without encryption', fix);
    } else return fault('holds a parameter that is not known here', 'remove what follows the ?');
  }
  return found;
}
