/**
 * Signs a dossier with the key of the audit log, and verifies one. A dossier is a JSON document, or
 * a page that contains this document; both have a detached signature beside them (FILE.sig), over
 * the exact bytes of the file, in base64. A page also holds two signatures itself: of the document
 * in it, and of everything that comes before the signatures.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { z } from 'zod';
import { parseJson } from '../audit/log-verification.ts';
import { isSigned, keyId, type SigningKey } from '../../store/audit/signing-key.ts';
import { Invalid } from '../../domain/errors.ts';
import { writeLines } from '../state/write-export.ts';
import type { Dossier } from './dossier-document.ts';
import { documentIn, pageOf, signaturesIn } from './dossier-page.ts';

/** The form of a dossier. */
export type Format = 'json' | 'html';

/** What a signed dossier says of its key. */
const signer = z.object({
  signedBy: z.object({ algorithm: z.string(), key: z.string(), publicKey: z.string() }).nullable(),
});

/** Returns the text of a dossier. The signatures cover exactly this text. */
export function textOf(document: Dossier, key: SigningKey | undefined): string {
  const by = key && { algorithm: 'Ed25519', key: key.id, publicKey: key.publicKey };
  return `${JSON.stringify({ ...document, signedBy: by ?? null }, null, 2)}\n`;
}

/** Writes a dossier and its signature to new files (0600): both or none. Throws Invalid. */
export function writeSigned(
  path: string,
  { document, format }: { document: Dossier; format: Format },
  key: SigningKey | undefined,
): { file: string; signature: string | null; key: string | null } {
  const json = textOf(document, key);
  const text = format === 'json' ? json : pageOf(document, json, key);
  writeLines(path, [text.replace(/\n$/, '')]);
  if (!key) return { file: path, signature: null, key: null };
  const signature = `${path}.sig`;
  try {
    writeLines(signature, [key.sign(text).toString('base64')]);
  } catch (error) {
    rmSync(path);
    throw error;
  }
  return { file: path, signature, key: key.id };
}

/** What a verification of a dossier found. */
export interface Verified {
  format: Format;
  /** The id of the key that it names; null if it is not signed. */
  key: string | null;
  /** Whether every signature fits. */
  fits: boolean;
  /** Whether the key is one of those that are accepted. */
  trusted: boolean;
  faults: string[];
}

/** Verifies a dossier. `accepted` are ids of keys. Throws Invalid if the file is no dossier. */
export function verifyFile(path: string, accepted: ReadonlySet<string>): Verified {
  const text = readText(path);
  const format = text.startsWith('<!doctype html>') ? 'html' : 'json';
  const json = format === 'json' ? text : documentIn(text);
  const named = signer.safeParse(parseJson(json ?? '')).data;
  if (json === undefined || !named) {
    const reason = `${path}: this is no dossier, or it was changed so that it cannot be read`;
    throw new Invalid(reason, { fix: 'get it again from the person who made it' });
  }
  const { signedBy } = named;
  if (!signedBy) {
    const faults = ['it is not signed'];
    return { format, key: null, fits: false, trusted: false, faults };
  }
  const { publicKey } = signedBy;
  const key = keyId(publicKey);
  const detached = existsSync(`${path}.sig`) ? readText(`${path}.sig`) : undefined;
  const isFit = (of: string, signature: string): boolean =>
    isSigned(of, Buffer.from(signature, 'base64'), publicKey);
  const checks: [isWrong: boolean, what: string][] = [
    [key !== signedBy.key, 'the id of the key does not belong to its public key'],
    [format === 'json' && detached === undefined, `there is no signature beside it (${path}.sig)`],
    [detached !== undefined && !isFit(text, detached), 'the signature beside it does not fit'],
  ];
  const page = format === 'html' ? signaturesIn(text) : undefined;
  if (page) {
    checks.push(
      [page.publicKey !== publicKey, 'the page names another key than the document in it'],
      [!isFit(json, page.document), 'the signature of the document in the page does not fit'],
      [!isFit(page.covered, page.page), 'the signature of the page does not fit'],
    );
  } else if (format === 'html') {
    checks.push([true, 'the end of the page, which holds the signatures, was changed']);
  }
  const faults = checks.filter(([isWrong]) => isWrong).map(([, what]) => what);
  return { format, key, fits: faults.length === 0, trusted: accepted.has(key), faults };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new Invalid(`${path}: this file cannot be read`, { fix: 'name another' });
  }
}
