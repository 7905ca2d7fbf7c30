/** Hashes passwords with scrypt, as `scrypt:N:r:p:salt:hash` with salt and hash in base64url. */
import { scrypt, timingSafeEqual } from 'node:crypto';

const cost = { N: 2 ** 15, r: 8, p: 1 };
const bytes = 32;
const form = /^scrypt:(\d{1,7}):(\d{1,2}):(\d{1,2}):([\w-]{22,}):([\w-]{43})$/;

/** Returns the hash of a password. `salt`: 16 unpredictable bytes, never used before. */
export async function hashPassword(password: string, salt: Buffer): Promise<string> {
  const hash = await derive(password, salt, cost);
  const { N, r, p } = cost;
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join(':');
}

/** Returns whether a text has the form of a hash. */
export function isPasswordHash(text: string): boolean {
  return form.test(text);
}

/** Returns whether the password has this hash. A missing hash takes as long as a wrong password. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, N = cost.N, r = cost.r, p = cost.p, salt = '', expected = ''] =
    form.exec(hash ?? '') ?? [];
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
