/**
 * Writes the document of a person as a file that is signed with the key of the audit log, and
 * verifies one. The file is JSON, or a page that contains this document as text (no script, nothing
 * from elsewhere); both have a detached signature beside them (FILE.sig), over the exact bytes of
 * the file, in base64. A page also holds two signatures itself: of the document in it, and of
 * everything that comes before the signatures.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { escapeHtml, unescapeHtml } from '../../domain/values/html-text.ts';
import { type SigningKey, isSigned, keyId } from '../../store/memory/memory-key.ts';
import { instant } from '../../compose/output/format-values.ts';
import { writeLines } from '../../compose/output/write-export.ts';
import { tryParseJson } from '../audit/log-verification.ts';
import { present } from '../sections.ts';
import { sectionsHtml } from '../render/html.ts';
import type { PersonDocument } from './person-document.ts';
import { headOf, personSections } from './person-sections.ts';

/** The forms that the file may have. */
export const formats = ['json', 'html'] as const;
export type Format = (typeof formats)[number];

const signer = z.object({
  signedBy: z.object({ algorithm: z.string(), key: z.string(), publicKey: z.string() }).nullable(),
});

/** Returns the text of the file. `now` is in milliseconds since the epoch. */
export async function signedText(
  document: PersonDocument,
  { format, key, now }: { format: Format; key: SigningKey | undefined; now: number },
): Promise<string> {
  const by = key && { algorithm: 'Ed25519', key: key.id, publicKey: key.publicKey };
  const whole = { version: 1, createdAt: instant(now), ...document, signedBy: by ?? null };
  const json = `${JSON.stringify(whole, null, 2)}\n`;
  if (format === 'json') return json;
  const title = escapeHtml(headOf(document));
  // A page that is printed or kept has nothing folded.
  const sections = personSections(document).map((one) => ({ ...one, isFolded: false }));
  const content = await sectionsHtml(sections, {});
  const covered = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<h1>${title}</h1>
<p>Created at ${instant(now)}.</p>
${content}
<section><h2>The signed document</h2><details><summary>JSON</summary>
${documentStart}${escapeHtml(json)}</pre></details></section>
`;
  if (!key) return `${covered}${footerStart}<p>Not signed: there is no key yet.</p></footer>\n`;
  const sign = (text: string): string => key.sign(text).toString('base64');
  return `${covered}${footerStart}
<table><tr><th>key (Ed25519)</th><td>${key.id}</td></tr>
<tr><th>signature of the document</th><td>${sign(json)}</td></tr>
<tr><th>signature of the page up to here</th><td>${sign(covered)}</td></tr></table>
<pre>${key.publicKey}</pre>
</footer>
`;
}

const style = `
:root { color-scheme: light dark; --line: #8885; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8b7f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
section { border-top: 1px solid var(--line); }
.bad { color: var(--bad); }
.timeline p, .timeline dl { margin: .15rem 0; }
dt { float: left; clear: left; min-width: 7rem; opacity: .7; }
.hidden { display: none; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
th { font-weight: normal; opacity: .7; white-space: nowrap; }
td { overflow-wrap: anywhere; }
td table { border-left: 2px solid var(--line); } td td, td th { padding-left: .5rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } tr { break-inside: avoid; } }
`;

const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;
const documentStart = '<pre id="document">';
const footerStart = '<footer id="signature">';

/** Writes such a text and its signature to new files (0600): both or none. Throws Invalid. */
export function writeSigned(
  path: string,
  text: string,
  key: SigningKey | undefined,
): { file: string; signature: string | null; key: string | null } {
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

export interface Verified {
  format: Format;
  /** The id of the key that it names; null if it is not signed. */
  key: string | null;
  fits: boolean;
  /** Whether the key is one of those that are accepted. */
  trusted: boolean;
  faults: string[];
}

/** Verifies a file. `accepted` are ids of keys. Throws Invalid for any other file. */
export function verifyFile(path: string, accepted: ReadonlySet<string>): Verified {
  const text = readText(path);
  const format = text.startsWith('<!doctype html>') ? 'html' : 'json';
  const json = format === 'json' ? text : documentIn(text);
  const named = json === undefined ? undefined : signer.safeParse(tryParseJson(json)).data;
  if (json === undefined || !named) {
    const reason = `${path}: this is no signed file about a person, or it was changed so that it cannot be read`;
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
  const isPage = format === 'html';
  const page = isPage ? signaturesIn(text) : undefined;
  const faults = present(
    key !== signedBy.key && 'the id of the key does not belong to its public key',
    !isPage && detached === undefined && `there is no signature beside it (${path}.sig)`,
    detached !== undefined && !isFit(text, detached) && 'the signature beside it does not fit',
    isPage && !page && 'the end of the page, which holds the signatures, was changed',
    page && page.publicKey !== publicKey && 'the page names another key than the document in it',
    page && !isFit(json, page.document) && 'the signature of the document in the page does not fit',
    page && !isFit(page.covered, page.page) && 'the signature of the page does not fit',
  );
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

function signaturesIn(page: string) {
  const at = page.lastIndexOf(footerStart);
  const [, document, own, publicKey] = footer.exec(page.slice(Math.max(at, 0))) ?? [];
  if (document === undefined || own === undefined || publicKey === undefined) return undefined;
  return { document, page: own, publicKey, covered: page.slice(0, at) };
}
