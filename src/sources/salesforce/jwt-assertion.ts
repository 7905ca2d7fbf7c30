/** The signed claim of the JWT bearer flow (RFC 7523): who asks, as whom, of whom, until when. */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';
import { readSmallFile } from '../../domain/values/config-file.ts';
import type { SalesforceOptions } from './options.ts';

/** Salesforce takes none that is good for longer than three minutes. */
const GOOD_FOR_S = 120;

/** The key is read anew each time: it may have been exchanged. Throws Invalid without one. */
export async function assertionOf(
  { url, auth }: SalesforceOptions,
  nowMs: number,
): Promise<string> {
  const claims = {
    iss: auth.clientId,
    sub: auth.username,
    aud: auth.audience ?? audienceOf(url),
    exp: Math.floor(nowMs / 1000) + GOOD_FOR_S,
  };
  const parts = [{ alg: 'RS256', typ: 'JWT' }, claims];
  const text = parts.map((part) => base64(Buffer.from(JSON.stringify(part)))).join('.');
  return `${text}.${base64(sign('RSA-SHA256', Buffer.from(text), keyOf(await pemOf(auth))))}`;
}

function audienceOf(url: string): string {
  const { hostname } = new URL(url);
  const isSandbox = hostname === 'test.salesforce.com' || hostname.includes('.sandbox.');
  return `https://${isSandbox ? 'test' : 'login'}.salesforce.com`;
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64url');
}

async function pemOf({ privateKey, privateKeyFile }: SalesforceOptions['auth']): Promise<string> {
  // Where a variable cannot hold lines, they are often written with \n.
  if (privateKey !== undefined) return privateKey.replaceAll('\\n', '\n');
  try {
    return readSmallFile(privateKeyFile ?? '').toString('utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    const what = `${privateKeyFile}: the private key cannot be read${code}`;
    throw new Invalid(`${what} → make it readable, or correct auth.privateKeyFile of the source`);
  }
}

/** The cause is left out: it may quote the key. */
function keyOf(pem: string): KeyObject {
  const key = parsed(pem);
  if (key?.asymmetricKeyType === 'rsa') return key;
  const what = key ? 'is no RSA key' : 'is no private key in PEM, or has a passphrase';
  throw new Invalid(
    `the private key of the source ${what} → make one with openssl genrsa, and its certificate`,
  );
}

function parsed(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
