/**
 * Reads the file of the console's users, again whenever it has changed:
 *
 *   users:
 *     - { name: anna, role: operator, password: 'scrypt:…' }
 *
 * `crm-mirror console --add-user NAME` adds one. Passwords are hashed with scrypt, as
 * `scrypt:N:r:p:salt:hash` with salt and hash in base64url.
 */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { scrypt, timingSafeEqual } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { codeOf, Invalid } from '../../domain/errors.ts';

/** What a user may do: a viewer only looks. */
export const roles = ['viewer', 'operator'] as const;
export type Role = (typeof roles)[number];

const hashForm = /^scrypt:(\d{1,7}):(\d{1,2}):(\d{1,2}):([\w-]{22,}):([\w-]{43})$/;

const user = z.strictObject({
  name: z
    .string()
    .regex(/^[\p{L}\p{N}._@-]{1,64}$/u, 'a name has 1 to 64 letters, digits, . _ @ -'),
  role: z.enum(roles),
  password: z.string().refine((text) => hashForm.test(text), 'it is no hash of a password'),
  /** A user who may not sign in any more. */
  disabled: z.boolean().optional(),
});
const file = z.strictObject({ users: z.array(user) });

/** A user in the file. */
export type KnownUser = z.infer<typeof user>;

/** The users of a file. */
export type Users = ReturnType<typeof openUsers>;

/** Opens a file of users. Throws Invalid if it cannot be used now. */
export function openUsers(path: string) {
  let known = { stamp: '', users: new Map<string, KnownUser>() };
  const current = (): Map<string, KnownUser> => {
    const stamp = stampOf(path);
    if (stamp !== known.stamp) known = { stamp, users: readUsers(path) };
    return known.users;
  };
  current();
  return {
    path,
    /** Returns a user who may sign in. Throws Invalid if the file cannot be used. */
    find(name: string): KnownUser | undefined {
      const found = current().get(name);
      return found?.disabled ? undefined : found;
    },
    /** Returns all users. Throws Invalid if the file cannot be used. */
    list: (): KnownUser[] => [...current().values()],
  };
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, ino, size } = statSync(path);
    return [mtimeMs, ino, size].join(' ');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Adds a user to the file. Creates the file for its owner only. Throws Invalid for a file or a name
 * that cannot be used, and for a known user, whose password stays.
 */
export function addUser(path: string, added: KnownUser): void {
  const checked = user.safeParse(added);
  if (!checked.success) {
    throw new Invalid(`this user cannot be added: ${checked.error.issues[0]?.message ?? ''}`, {
      fix: 'choose another name',
    });
  }
  const users = existsSync(path) ? readUsers(path) : new Map<string, KnownUser>();
  if (users.has(added.name)) {
    throw new Invalid(`${added.name} is in ${path} already`, {
      fix: 'change the password or the role on the page Users of the console, or in the file',
    });
  }
  users.set(added.name, checked.data);
  writeUsers(path, users);
}

/**
 * Changes a user of the file. Throws Invalid for an unknown name, and where no operator would be
 * left who may sign in.
 */
export function changeUser(path: string, name: string, change: Partial<KnownUser>): void {
  const users = readUsers(path);
  const known = users.get(name);
  if (!known) throw new Invalid(`${name} is no user of ${path}`, { fix: 'reload the page' });
  users.set(name, { ...known, ...change });
  const isLeading = ({ role, disabled }: KnownUser) => role === 'operator' && !disabled;
  // A proxy may name the operators, so that the file has none.
  if (isLeading(known) && ![...users.values()].some(isLeading)) {
    throw new Invalid(`${name} is the last operator`, { fix: 'make somebody else one first' });
  }
  writeUsers(path, users);
}

function writeUsers(path: string, users: ReadonlyMap<string, KnownUser>): void {
  const next = `${path}.new`;
  writeFileSync(next, stringify({ users: [...users.values()] }), { mode: 0o600 });
  renameSync(next, path);
}

/** Reads the users of a file by name. Throws Invalid for a file that cannot be used. */
function readUsers(path: string): Map<string, KnownUser> {
  let text: unknown;
  try {
    text = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw unreadable(path, error);
  }
  const read = file.safeParse(text);
  if (!read.success) {
    const [issue] = read.error.issues;
    const where = issue?.path.join('.') ?? '';
    throw new Invalid(`${path}: ${where === '' ? '' : `${where}: `}${issue?.message ?? ''}`, {
      fix: 'add users with `crm-mirror console --add-user NAME`',
    });
  }
  const users = new Map(read.data.users.map((one) => [one.name, one]));
  if (users.size < read.data.users.length) {
    throw new Invalid(`${path}: two users have the same name`, { fix: 'remove one of them' });
  }
  return users;
}

function unreadable(path: string, error: unknown): Invalid {
  const code = codeOf(error);
  const reason = code === 'ENOENT' ? 'no such file' : `it cannot be read${code && ` (${code})`}`;
  return new Invalid(`the users of the console: ${path}: ${reason}`, {
    fix: 'make it with `crm-mirror console --add-user NAME`',
    cause: error,
  });
}

const cost = { N: 2 ** 15, r: 8, p: 1 };
const bytes = 32;

/** Returns the hash of a password. `salt`: 16 unpredictable bytes, never used before. */
export async function hashPassword(password: string, salt: Buffer): Promise<string> {
  const hash = await derive(password, salt, cost);
  const { N, r, p } = cost;
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join(':');
}

/** Returns whether the password has this hash. A missing hash takes as long as a wrong password. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, N = cost.N, r = cost.r, p = cost.p, salt = '', expected = ''] =
    hashForm.exec(hash ?? '') ?? [];
  const found = await derive(password, Buffer.from(salt, 'base64url'), {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  });
  const wanted = Buffer.from(expected, 'base64url');
  return wanted.length === found.length && timingSafeEqual(wanted, found);
}

function derive(password: string, salt: Buffer, of: typeof cost): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const options = { ...of, maxmem: 256 * of.N * of.r };
  scrypt(password.normalize('NFKC'), salt, bytes, options, (error, key) => {
    if (error) reject(error);
    else resolve(key);
  });
  return promise;
}
