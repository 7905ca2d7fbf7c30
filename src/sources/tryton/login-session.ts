/**
 * Obtains access: a session, opened with a user's name and password. It is kept for as long as it
 * is accepted, because each login costs the server the computation of a password hash.
 */
import { pathSegment } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Invalid, RateLimited, Unavailable } from '../../domain/errors.ts';
import type { Asking, CrmRequest, Said } from '../shared/crm-request.ts';
import { smallText } from '../shared/files/local-file.ts';
import { quoted } from '../shared/field-suggestions.ts';
import type { TrytonOptions } from './options.ts';

/** The period for which Tryton counts wrong passwords. */
const HELD_BACK_MS = 5 * 60_000;

/** Manages the session of one user. */
export interface Logins {
  /** Returns the header that opens the database, from the existing session or a new one. */
  current(asking: Asking, signal: AbortSignal): Promise<string>;
  /** Returns a new header after `refused` was refused, unless a newer one already exists. */
  renew(refused: string, asking: Asking, signal: AbortSignal): Promise<string>;
}

/** Creates the logins of a user, without a session. */
export function createLogins(options: TrytonOptions): Logins {
  let known: string | undefined;
  const enter = async (asking: Asking, signal: AbortSignal) =>
    (known = await logIn(options, asking, signal));
  return {
    current: async (asking, signal) => known ?? enter(asking, signal),
    renew: async (refused, asking, signal) =>
      known !== undefined && known !== refused ? known : enter(asking, signal),
  };
}

const session = z.object({ result: z.tuple([z.number().int(), z.string().min(1)]) });
const failed = z.object({ error: z.tuple([z.string()]).rest(z.unknown()) });

async function logIn(options: TrytonOptions, asking: Asking, signal: AbortSignal): Promise<string> {
  const { username } = options;
  const params = [username, { password: await passwordOf(options) }];
  const question = questionOf(options, 'common.db.login', params);
  const said = await asking.ask({ ...question, accepts: [401, 403, 404, 429] }, signal);
  if (!said) throw new Error('404 is among what is accepted');
  if (said.status >= 400) throw refusal(said, asking.host, options);
  const { data } = session.safeParse(said.value);
  if (data) {
    const [user, key] = data.result;
    // The server splits the header at the colons, and uses only the number and the key.
    const parts = [username.replaceAll(':', ' '), user, key];
    return `Session ${Buffer.from(parts.join(':')).toString('base64')}`;
  }
  throw failure(failed.safeParse(said.value).data?.error[0], asking.host, options);
}

/**
 * Returns the error for a failed login, based on the error name in the response (undefined if there
 * is none).
 */
function failure(kind: string | undefined, host: string, { database }: TrytonOptions): Error {
  if (kind === 'LoginException') {
    const mend = 'have its authentications (trytond.conf, session) accept a password alone';
    return new Invalid(`${host} wants more than a password of this user`, { fix: mend });
  }
  if (kind?.endsWith("doesn't exist!")) return noDatabase(host, database);
  const doubt = 'is url of the source the address of a Tryton?';
  const mend = kind === undefined ? doubt : 'look into its log';
  return new Unavailable(`${host} gave no session`, { fix: mend, acted: 'maybe' });
}

function noDatabase(host: string, database: string): Invalid {
  const mend = 'correct url or database of the source, or see whether that runs';
  return new Invalid(`${host} opens no database ${quoted(database)}`, { fix: mend });
}

function refusal({ status }: Said, host: string, { database }: TrytonOptions): Error {
  if (status === 404) return noDatabase(host, database);
  if (status === 429) {
    const what = `${host} lets nobody in for now, after too many wrong passwords (429)`;
    const detail = { retryAfterMs: HELD_BACK_MS, route: host };
    return new RateLimited(what, {
      ...detail,
      fix: 'correct password of the source, and try later',
    });
  }
  const mend = 'correct username or password of the source';
  return new Invalid(`${host} refused the credentials (${status})`, { fix: mend });
}

/**
 * Returns the password. A file is read again each time, so that the password can be changed at any
 * time.
 */
async function passwordOf({ password = '', passwordFile }: TrytonOptions): Promise<string> {
  if (passwordFile === undefined) return password;
  const text = smallText(passwordFile);
  const line = text.replace(/\r?\n$/, '');
  if (line !== '' && !line.includes('\n')) return line;
  throw new Invalid(`${passwordFile}: the file of the password holds none`, {
    fix: 'write it alone into it',
  });
}

/**
 * Returns a JSON-RPC call. Because it has an id, a failure is reported in the response and not by
 * its status.
 */
export function questionOf(
  { url, database }: TrytonOptions,
  method: string,
  params: readonly unknown[],
): CrmRequest {
  return {
    address: new URL(`/${pathSegment(database)}/`, url).href,
    body: { type: 'application/json', text: JSON.stringify({ id: 0, method, params }) },
  };
}
