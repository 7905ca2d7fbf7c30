/**
 * Signs a dossier with the key of the audit log, and verifies one. A dossier is a JSON document, or
 * a page that contains this document as text; both have a detached signature beside them
 * (FILE.sig), over the exact bytes of the file, in base64. A page also holds two signatures itself:
 * of the document in it, and of everything that comes before the signatures.
 */
import { type SigningKey, isSigned, keyId } from '../../store/audit/signing-key.ts';
import { unescapeHtml } from '../../domain/values/html-text.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Dossier } from './dossier-document.ts';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { z } from 'zod';
import { tryParseJson } from '../audit/log-verification.ts';
import { writeLines } from '../state/write-export.ts';
import { documentStart, footerStart, pageOf } from './dossier-page.ts';

/** The form of a dossier. */
export type Format = 'json' | 'html';

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
  const named = json === undefined ? undefined : signer.safeParse(tryParseJson(json)).data;
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
  if (format === 'html') {
    const page = signaturesIn(text);
    if (!page) checks.push([true, 'the end of the page, which holds the signatures, was changed']);
    else
      checks.push(
        [page.publicKey !== publicKey, 'the page names another key than the document in it'],
        [!isFit(json, page.document), 'the signature of the document in the page does not fit'],
        [!isFit(page.covered, page.page), 'the signature of the page does not fit'],
      );
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

const footer = new RegExp(
  `^${footerStart}
<table><tr><th>key \\(Ed25519\\)</th><td>[0-9a-f]{16}</td></tr>
<tr><th>signature of the document</th><td>([\\w+/=]+)</td></tr>
<tr><th>signature of the page up to here</th><td>([\\w+/=]+)</td></tr></table>
<pre>(-----BEGIN PUBLIC KEY-----\n[\\w+/=\n]+-----END PUBLIC KEY-----\n)</pre>
</footer>
$`,
);

function documentIn(page: string): string | undefined {
  const [, text] = page.split(documentStart);
  const end = text?.indexOf('</pre>') ?? -1;
  return text === undefined || end < 0 ? undefined : unescapeHtml(text.slice(0, end));
}

/** Returns the signatures at the end of a page and what they cover, or undefined. */
function signaturesIn(page: string) {
  const at = page.lastIndexOf(footerStart);
  const [, document, own, publicKey] = footer.exec(page.slice(Math.max(at, 0))) ?? [];
  if (document === undefined || own === undefined || publicKey === undefined) return undefined;
  return { document, page: own, publicKey, covered: page.slice(0, at) };
}
