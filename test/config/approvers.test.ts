/** The approvers that a configuration may name. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { approvers } from '../../src/config/schema/file-schema.ts';
import { fixOf } from '../../src/domain/schema-fields.ts';

const pair = generateKeyPairSync('ed25519');
const pem = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
const base64 = pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
const secret = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const secretBase64 = pair.privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const rsaPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();

test.each([pem, base64, ` ${base64}\n`])('a public key is read as base64 or PEM', (key) => {
  expect(approvers.parse({ need: 1, keys: { ada: key } }).keys).toEqual({ ada: base64 });
});

test.each([
  [{ need: 0, keys: { ada: pem } }, ''],
  [{ need: 2, keys: { ada: pem } }, 'is more than there are keys'],
  [{ need: 1, keys: {} }, 'is more than there are keys'],
  [{ need: 2, keys: { ada: pem, ben: base64 } }, 'is also the key of ada'],
  [{ need: 1, keys: { ada: secret } }, 'is a private key'],
  [{ need: 1, keys: { ada: secretBase64 } }, 'is a private key'],
  [{ need: 1, keys: { ada: rsaPem } }, 'is no public Ed25519 key'],
  [{ need: 1, keys: { ada: 'abc' } }, 'is no public Ed25519 key'],
  [{ need: 1, keys: { 'ada@example.com': pem } }, ''],
])('mistake %#: %s is refused', (value, why) => {
  const { error } = approvers.safeParse(value);
  const text = JSON.stringify(error?.issues);
  expect(error?.issues.map(({ message }) => message).join(', ')).toContain(why);
  if (why !== '') expect(error?.issues.map(fixOf)).not.toContain(undefined);
  expect(text).not.toContain(secretBase64.slice(20));
});
