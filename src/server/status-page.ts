/**
 * Renders the status page of all mirrors, without scripts. Mirrors that need attention come first.
 */
import { createHash } from 'node:crypto';
import { escapeHtml } from '../domain/values/html-text.ts';

/** The status of one mirror, as `crm-mirror status` shows it. A person is named only by a hash. */
export interface MirrorStatus {
  mirror: string;
  /** The time at which it was read, in ISO 8601. */
  at: string;
  /** What needs attention, most serious first; empty if nothing does. */
  attention: readonly { text: string; fix: string }[];
  /** Shown if `attention` is empty. */
  calm: string;
  /** The rows of the table; each row is a name and a value. */
  rows: readonly (readonly string[])[];
}

const refreshSeconds = 15;

const style = `
:root { color-scheme: light dark; --line: #8884; --good: #18794e; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --good: #4cc38a; --bad: #ff8b7f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
body { padding: 0 1rem; }
header { display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: baseline; }
h1 { font-size: 1.4rem; margin: 0 auto 0 0; }
h2 { font-size: 1.1rem; margin: 0; }
section { border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1rem 0; }
section.bad { border-color: var(--bad); }
.good b { color: var(--good); }
.bad b { color: var(--bad); }
ul { margin: .5rem 0; padding-left: 1.2rem; }
li span { opacity: .75; }
table { border-collapse: collapse; width: 100%; margin-top: .75rem; }
th, td { text-align: left; vertical-align: top; font-weight: normal; }
th, td { padding: .15rem 1rem .15rem 0; }
th { opacity: .7; white-space: nowrap; }
td { overflow-wrap: anywhere; }
footer { opacity: .7; }
`;

/** The page's Content-Security-Policy. The page loads nothing and runs no script. */
export const pagePolicy: string = [
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** Renders the page as HTML. */
export function renderPage(statuses: readonly MirrorStatus[]): string {
  const urgent = statuses.filter(({ attention }) => attention.length > 0);
  const calm = statuses.filter(({ attention }) => attention.length === 0);
  const title = urgent.length > 0 ? `${urgent.length} to look at` : 'all is well';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${refreshSeconds}">
<title>crm-mirror: ${title}</title>
<style>${style}</style>
</head>
<body>
<header><h1>crm-mirror</h1><a href="/queues">queues</a><a href="/metrics">metrics</a></header>
<main>
${[...urgent, ...calm].map(section).join('\n')}
</main>
<footer>${escapeHtml(statuses[0]?.at ?? '')}, again every ${refreshSeconds} seconds</footer>
</body>
</html>
`;
}

function section({ mirror, attention, calm, rows }: MirrorStatus): string {
  const isWell = attention.length === 0;
  const needs = attention.map(
    ({ text, fix }) => `<li>${escapeHtml(text)}<br><span>→ ${escapeHtml(fix)}</span></li>`,
  );
  const told = rows.map(
    ([what = '', how = '']) => `<tr><th>${escapeHtml(what)}</th><td>${escapeHtml(how)}</td></tr>`,
  );
  return [
    `<section class="${isWell ? 'good' : 'bad'}">`,
    `<h2>${escapeHtml(mirror)} <b>${isWell ? escapeHtml(calm) : 'needs attention'}</b></h2>`,
    ...(isWell ? [] : [`<ul>${needs.join('')}</ul>`]),
    `<table>${told.join('')}</table>`,
    '</section>',
  ].join('\n');
}
