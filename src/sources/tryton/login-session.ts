/**
 * How to get in: a session, by the name and password of a user. It is kept for as long as it is
 * accepted, since each login costs the server the work of its password hash.
 */
import { z } from 'zod';
import { Invalid, RateLimited, Unavailable } from '../../domain/errors.ts';
import type { Asking, Said } from '../shared/crm-request.ts';
import { smallText } from '../shared/files/file-bytes.ts';
import { quoted } from '../shared/field-suggestions.ts';
import type { TrytonOptions } from './options.ts';
import { questionOf } from './json-rpc-call.ts';

/** So long Tryton counts wrong passwords. */
const HELD_BACK_MS = 5 * 60_000;

export interface Logins {
  /** The header that opens the database: the one that is there, or a new one. */
  current(asking: Asking, signal: AbortSignal): Promise<string>;
  /** A new one after this one was refused, unless there is one already. */
  renew(refused: string, asking: Asking, signal: AbortSignal): Promise<string>;
}

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
    // The server parts it at the colons, and goes by the number and the key.
    const parts = [username.replaceAll(':', ' '), user, key];
    return `Session ${Buffer.from(parts.join(':')).toString('base64')}`;
  }
  throw failure(failed.safeParse(said.value).data?.error[0], asking.host, options);
}

/** By how an answer names what went wrong; undefined: it does not. */
function failure(kind: string | undefined, host: string, { database }: TrytonOptions): Error {
  if (kind === 'LoginException') {
    const mend = 'have its authentications (trytond.conf, session) accept a password alone';
    return new Invalid(`${host} wants more than a password of this user → ${mend}`);
  }
  if (kind?.endsWith("doesn't exist!")) return noDatabase(host, database);
  const doubt = 'is url of the source the address of a Tryton?';
  const mend = kind === undefined ? doubt : 'look into its log';
  return new Unavailable(`${host} gave no session → ${mend}`, { acted: 'maybe' });
}

function noDatabase(host: string, database: string): Invalid {
  const mend = 'correct url or database of the source, or see whether that runs';
  return new Invalid(`${host} opens no database ${quoted(database)} → ${mend}`);
}

function refusal({ status }: Said, host: string, { database }: TrytonOptions): Error {
  if (status === 404) return noDatabase(host, database);
  if (status === 429) {
    const what = `${host} lets nobody in for now, after too many wrong passwords (429)`;
    const detail = { retryAfterMs: HELD_BACK_MS, route: host };
    return new RateLimited(`${what} → correct password of the source, and try later`, detail);
  }
  const mend = 'correct username or password of the source';
  return new Invalid(`${host} refused the credentials (${status}) → ${mend}`);
}

/** Read anew each time, so that a password may be changed at any time. */
async function passwordOf({ password = '', passwordFile }: TrytonOptions): Promise<string> {
  if (passwordFile === undefined) return password;
  const text = smallText(passwordFile);
  const line = text.replace(/\r?\n$/, '');
  if (line !== '' && !line.includes('\n')) return line;
  throw new Invalid(
    `${passwordFile}: the file of the password holds none → write it alone into it`,
  );
}
