import { type ApiOutcome, refuse, refuseBriefly } from './shared/api-answer.ts';
import type { Operation } from './api/operation.ts';
import type { Accounts } from './store/accounts.ts';
import type { KeyRow } from './shared/row-types.ts';
import type { Organization } from './store/organization.ts';

/**
 * The organization that a request acts for, and the key it came with; with a session there is no
 * key.
 */
export type Admitted = { organization: Organization; key?: KeyRow } | { refusal: ApiOutcome };

/**
 * Decides who may ask ("Authentication").
 *
 *   operation    the request has                   answer
 *   by key       no key, or an unknown one         401
 *   by key       a revoked or disabled key         401
 *   by session   the session of a member           in, whatever key came with it
 *   by session   the session of anybody else       403
 *   by session   only a good key                   403: keys are not accepted there
 *   by session   neither                           401
 */
export function admit(
  accounts: Accounts,
  { session }: Pick<Operation, 'session'>,
  headers: Readonly<Record<string, string>>,
): Admitted {
  const known = session ? bySession(accounts, headers['cookie'] ?? '') : undefined;
  if (known) return known;
  const admitted = byKey(accounts, headers['x-api-key']);
  if (!session || ('refusal' in admitted && headers['x-api-key'] !== undefined)) return admitted;
  if ('refusal' in admitted) return { refusal: refuseBriefly(401, 'No valid session') };
  return { refusal: refuseBriefly(403, 'API keys are not accepted here: a session is required') };
}

/** Returns whether a key may use a method: GET needs read, any other method needs write. */
export function permits({ permissions }: KeyRow, method: string): boolean {
  const needed = method === 'GET' ? 'read' : 'write';
  return permissions.split(',').some((permission) => permission.trim() === needed);
}

/** Returns the refusal of a key without the permission. */
export function forbidden(key: KeyRow, { method, brief }: Operation): ApiOutcome {
  const message = 'Unauthorized access';
  if (brief) return refuseBriefly(403, message);
  const needed = method === 'GET' ? 'read' : 'write';
  return refuse(403, message, {
    why: `The API key "${key.name}" may ${key.permissions || 'nothing'}; this needs ${needed}.`,
    fix: `Use a key with the permission ${needed}.`,
  });
}

function byKey(accounts: Accounts, secret: string | undefined): Admitted {
  if (secret === undefined) {
    return unauthorized('Missing API key', {
      why: 'The request has no x-api-key header.',
      fix: 'Send the API key of your organization in the x-api-key header.',
    });
  }
  const found = accounts.byKey(secret);
  if (found === undefined) {
    return unauthorized('Invalid API key', {
      why: 'The key in the x-api-key header belongs to no organization.',
      fix: 'Compare the key with the one the emulator printed when it started.',
    });
  }
  const { id, revoked, enabled } = found.key;
  if (revoked) {
    return unauthorized('API key revoked', {
      why: `The key ${id} was revoked, which is for good.`,
      fix: 'Use another key of the organization.',
    });
  }
  if (enabled) return found;
  return unauthorized('API key disabled', {
    why: `The key ${id} is disabled, and cannot enable itself.`,
    fix: `Enable it with another key of the organization: POST /api/api-key/v1/enable/${id}.`,
  });
}

function unauthorized(message: string, detail: { why: string; fix: string }): Admitted {
  return { refusal: refuse(401, message, detail) };
}

/** Checks the cookies for a session; undefined: none is anybody's. */
function bySession(accounts: Accounts, cookies: string): Admitted | undefined {
  for (const cookie of cookies.split(';')) {
    const [name = '', ...value] = cookie.split('=');
    if (!name.trim().endsWith('.session_token')) continue;
    const user = accounts.users.bySession(decode(value.join('=').trim()));
    if (user === undefined) continue;
    const organization = accounts.organizations.get(user.organizationId ?? '');
    if (organization !== undefined) return { organization };
    return { refusal: refuseBriefly(403, 'User is not a member of an organization') };
  }
  return undefined;
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
