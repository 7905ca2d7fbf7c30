/** Renders a dossier on one screen, and as one HTML file (no script, nothing from elsewhere). */
import { createHash } from 'node:crypto';
import { type SigningKey } from '../../store/audit/signing-key.ts';
import { escapeHtml } from '../../domain/values/html-text.ts';
import { renderProblem } from '../../domain/errors.ts';
import { entrySection } from '../audit/entry-document.ts';
import { sectionLines } from '../render/text.ts';
import { renderLine, type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import type { Dossier } from './dossier-document.ts';
import { counted } from '../../domain/values/counted.ts';

const style = `
:root { color-scheme: light dark; --line: #8885; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8b7f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
section { border-top: 1px solid var(--line); }
.missing { color: var(--bad); }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
th { font-weight: normal; opacity: .7; white-space: nowrap; }
td { overflow-wrap: anywhere; }
td table { border-left: 2px solid var(--line); } td td, td th { padding-left: .5rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } tr { break-inside: avoid; } }
`;

const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;
/** Where the signed document begins in a page. */
export const documentStart = '<pre id="document">';
/** Where the signatures begin in a page. */
export const footerStart = '<footer id="signature">';

/** Returns the page. `json` is the signed text of the same dossier. */
export function pageOf(document: Dossier, json: string, key: SigningKey | undefined): string {
  const covered = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Dossier of ${escapeHtml(document.person)}</title>
<style>${style}</style>
</head>
<body>
<h1>Dossier of ${escapeHtml(document.person)}</h1>
${sections(document).join('\n')}
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

function sections(dossier: Dossier): string[] {
  const { mirror, createdAt, asOf, answers, missing, audit } = dossier;
  const about = { mirror, 'created at': createdAt, ...(asOf === null ? {} : { 'as of': asOf }) };
  const why = [
    `<p>${escapeHtml(headOf(dossier))}</p>`,
    list(answers.map(({ sentence }) => sentence)),
  ];
  const lost = missing.map(({ part, ...problem }) => `${part}: ${renderProblem(problem)}`);
  const lines = sectionLines(
    (audit?.entries ?? []).map((entry) => entrySection(entry)),
    {
      isAll: true,
    },
  );
  const entries = lines.map((line) => renderLine(line, false)).join('\n');
  const past = `Left out, because it can be shown for now only.`;
  const now = (value: unknown): string => (asOf === null ? shown(value) : `<p>${past}</p>`);
  return [
    valueTable(about),
    section('Which mail, and why', why.join('\n')),
    ...(lost.length > 0 ? [section('What could not be read', list(lost), 'missing')] : []),
    ...(audit?.altered
      ? [
          section(
            'The audit log was changed',
            list([audit.altered, ...audit.faults.map(({ seq, what }) => `entry ${seq}: ${what}`)]),
            'missing',
          ),
        ]
      : []),
    section(
      'Writes and decisions (audit log)',
      entries ? `<pre>${escapeHtml(entries)}</pre>` : none,
    ),
    section('CRM', now(contentOrReason(dossier.crm))),
    section('Platform', now(contentOrReason(dossier.platform))),
    section('Do-not-contact list', shown(dossier.doNotContact)),
    section('What the next run would do', now(dossier.decision)),
    section('Snapshot', now(dossier.snapshot)),
    section('Stored record', now(dossier.recorded)),
    section('Changes', now(dossier.history)),
    section('Requests to the platform', shown(dossier.requests)),
  ];
}

/** Returns a place, or why it was not read. */
function contentOrReason<T extends { read: boolean; why: string | null }>(place: T | null) {
  return place?.read === false ? { 'not read': place.why } : place;
}

const none = '<p>Nothing.</p>';

function section(title: string, content: string, of = ''): string {
  return `<section${of === '' ? '' : ` class="${of}"`}><h2>${escapeHtml(title)}</h2>\n${content}</section>`;
}

function list(items: readonly string[]): string {
  return items.length === 0
    ? ''
    : `<ul>${items.map((one) => `<li>${escapeHtml(one)}</li>`).join('')}</ul>`;
}

function shown(value: unknown): string {
  if (value === null || value === undefined || value === '') return none;
  if (Array.isArray(value) && value.length === 0) return none;
  return cell(value);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.map(cell).join('<br>');
  if (typeof value === 'object') return valueTable(value);
  return escapeHtml(typeof value === 'string' ? value : JSON.stringify(value));
}

function valueTable(value: object): string {
  const rows = Object.entries(value).map(
    ([name, of]) => `<tr><th>${escapeHtml(name)}</th><td>${cell(of)}</td></tr>`,
  );
  return rows.length === 0 ? '–' : `<table>${rows.join('')}</table>`;
}

/** Says whether anything is known of the person. */
function headOf({ known, erased, missing, audit }: Dossier): string {
  const unread = missing.length > 0 ? ' Not every part could be read.' : '';
  const altered = ' The audit log was changed: what follows from it is not proven.';
  const rest = `${unread}${audit?.whole === false ? altered : ''}`;
  const list =
    'They were erased on request: the do-not-contact list holds a keyed hash of the address' +
    ` since ${erased ?? ''}, so that they are not brought back.`;
  if (known) return `This is what is known of the person.${erased ? ` ${list}` : ''}${rest}`;
  return `Nothing is known of this person.${erased ? ` ${list}` : ''}${rest}`;
}

/** Returns the lines for people. `who` names the person. */
export function dossierLines(dossier: Dossier, who: string): Line[] {
  const { mirror, asOf, answers, missing, audit, requests, crm, platform, doNotContact } = dossier;
  const when = asOf === null ? '' : `, as of ${asOf}`;
  const unread = (name: string): string[] => [`  ${name.padEnd(20)} not read`];
  const count = (name: string, n: number | undefined, word: string): string[] => {
    const many = word === 'entry' ? 'entries' : `${word}s`;
    return n === undefined ? [] : [`  ${name.padEnd(20)} ${counted(n, word, many)}`];
  };
  return [
    styled('bold', `Dossier of ${who} in ${mirror}${when}`),
    headOf(dossier),
    '',
    ...answers.map(({ sentence }) => sentence),
    ...(answers.length > 0 ? [''] : []),
    ...(crm?.read === false ? unread('CRM') : count('CRM', crm?.records.length, 'record')),
    ...(platform?.read === false
      ? unread('platform')
      : count('platform', platform?.contacts.length, 'contact')),
    ...count('do-not-contact list', doNotContact.length, 'entry'),
    ...count('audit log', audit?.entries.length, 'entry'),
    ...count('requests', requests.length, 'request'),
    ...missing.map(({ part, ...problem }) =>
      lineOf('  ', styled('red', `${part} is missing`), `: ${renderProblem(problem)}`),
    ),
    ...(audit?.altered ? [lineOf('  ', styled('red', audit.altered))] : []),
    '',
    '--output FILE.html writes all of it as a signed page, --output FILE.json as a document.',
  ];
}
