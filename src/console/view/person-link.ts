/**
 * Links to the pages of people. A link contains the person's key in encrypted form, so no address
 * is in the history of a browser or the log of a proxy. The same person always has the same link.
 */
import { createHmac } from 'node:crypto';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { isExpected } from '../../domain/errors.ts';
import { sealOf } from '../../compose/queues/payload-encryption.ts';
import { html, type Html, linkTo, type PageRequest } from './page.ts';

/** The key is the snapshot's own, so the name of the mirror adds nothing. */
const use = { purpose: 'link' } as const;

type Meta = Pick<Snapshot['meta'], 'get'>;

/** Returns the address of the person's page. */
export function personLink(
  request: Pick<PageRequest, 'mirror'>,
  { meta }: { meta: Meta },
  key: Key,
): string {
  const secret = secretOf(meta);
  // A nonce that follows from the key keeps the link the same, and is never used for another key.
  const nonce = createHmac('sha256', secret).update(`link ${key}`).digest().subarray(0, 12);
  const sealed = sealOf({ key: secret, mirror: '', random: () => nonce }).close(key, use);
  return linkTo(request, `people/${Buffer.from(sealed, 'base64').toString('base64url')}`);
}

/** Returns the name of a record, with a link to the page if it is a person. */
export function namedRecord(
  request: Pick<PageRequest, 'mirror'>,
  { snapshot, names }: Pick<Seen, 'snapshot' | 'names'>,
  record: { kind: RecordTypeName; key: Key },
): Html | string {
  const name = names(record);
  if (!snapshot || record.kind !== 'contact') return name;
  return html`<a href="${personLink(request, snapshot, record.key)}">${name}</a>`;
}

/** Returns the key in the last part of such an address, or undefined if it is none. */
export function personIn({ meta }: { meta: Meta }, id: string): Key | undefined {
  const sealed = Buffer.from(id, 'base64url').toString('base64');
  try {
    const random = () => new Uint8Array();
    return sealOf({ key: secretOf(meta), mirror: '', random }).open(sealed, use);
  } catch (error) {
    if (isExpected(error)) return undefined;
    throw error;
  }
}

function secretOf(meta: Meta): string {
  return meta.get('name-key') ?? '';
}
