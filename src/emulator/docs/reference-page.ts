/** Serves the API as OpenAPI at /openapi.json, and as a self-contained page at /docs. */
import { describeApi, type DescribedOperation } from './openapi-document.ts';
import type { Answer } from '../../domain/exchange.ts';

interface Section {
  method: string;
  path: string;
  operation: DescribedOperation;
}

function section({ method, path, operation }: Section): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const asked = parameters.map(
    ({ name, in: place, required, schema }) =>
      `<tr><td><code>${text(name)}</code> ${required ? '<b>required</b>' : ''}</td>` +
      `<td>${place}</td><td>${typeOf(schema)}</td></tr>`,
  );
  const body = requestBody?.content['application/json'].schema;
  const answers = Object.entries(responses).map(([status, { description, content }]) => {
    const shape = typeOf(content['application/json'].schema);
    return `<tr><td><b>${status}</b></td><td>${text(description)}</td><td>${shape}</td></tr>`;
  });
  return `<details id="${operationId}"><summary><span class="${method}">${method}</span>
<code>${text(path)}</code><span>${text(summary)}</span></summary>
<p>${text(description)}</p>
${asked.length > 0 ? `<h3>Parameters</h3><table>${asked.join('')}</table>` : ''}
${body ? `<h3>Body</h3>${fields(body)}` : ''}
<h3>Answers</h3><table>${answers.join('')}</table></details>`;
}

function fields(schema: unknown): string {
  const properties = Object.entries(objectIn(schema, 'properties'));
  const required = Object.values(objectIn(schema, 'required'));
  const rows = properties.map(
    ([name, property]) =>
      `<tr><td><code>${text(name)}</code> ${required.includes(name) ? '<b>required</b>' : ''}</td>` +
      `<td>${typeOf(property)}</td></tr>`,
  );
  return `<table>${rows.join('')}</table>`;
}

/** Renders a schema on one line: its type, linked if it has a name, and its bounds. */
function typeOf(schema: unknown): string {
  const shape = objectOf(schema);
  const { $ref: reference } = shape;
  if (typeof reference === 'string') {
    const name = text(reference.split('/').at(-1) ?? '');
    return `<a href="#${name}">${name}</a>`;
  }
  const choices = Object.values(objectIn(schema, 'enum')).map(String);
  const bounds = Object.entries(shape)
    .filter(([name]) => /^(min|max|pattern|default|const|format)/.test(name))
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const parts =
    shape['type'] === 'array' ? [`array of ${typeOf(shape['items'])}`] : [kindOf(shape)];
  if (choices.length > 0) parts.push(text(choices.join(' | ')));
  if (bounds.length > 0) parts.push(`<small>${text(bounds.join(', '))}</small>`);
  return parts.join(' ');
}

function kindOf(shape: Record<string, unknown>): string {
  const { type, anyOf } = shape;
  if (Array.isArray(anyOf)) return anyOf.map(typeOf).join(' or ');
  return typeof type === 'string' ? type : 'anything';
}

function objectIn(schema: unknown, name: string): Record<string, unknown> {
  return objectOf(objectOf(schema)[name]);
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Escapes text for use between tags and in attributes. */
function text(plain: string): string {
  const names: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' };
  return plain.replaceAll(/[&<>"]/g, (char) => `&${names[char]};`);
}

/** The stylesheet of the page. It uses the reader's own fonts and supports light and dark mode. */
const style = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6474; --paper: #fbfbf9;
  --line: #e3e4e0; --card: #fff; --link: #2158c7 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #9aa3b2; --paper: #14171d;
  --line: #2b303a; --card: #1a1e26; --link: #8ab0ff } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
h1 { margin: 0 0 .5rem; font-size: 1.8rem; letter-spacing: -.02em }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.15rem }
h3 { margin: 1.25rem 0 .35rem; color: var(--soft); font-size: .8rem; font-weight: 600;
  letter-spacing: .06em; text-transform: uppercase }
header p { max-width: 46rem; color: var(--soft) }
a { color: var(--link) }
code { font: .9em ui-monospace, monospace }
details { margin: .5rem 0; padding: 0 1rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card) }
details[open] { padding-bottom: 1rem }
summary { display: flex; flex-wrap: wrap; gap: .75rem; align-items: baseline; padding: .6rem 0;
  cursor: pointer; list-style: none }
summary > span:last-child:not(:first-child) { margin-left: auto; color: var(--soft) }
summary > span:first-child { width: 4.2rem; padding: .1rem 0; border-radius: .3rem; color: #fff;
  font: 600 .72rem/1.5 ui-monospace, monospace; text-align: center; text-transform: uppercase }
.get { background: #2f6fb2 } .post { background: #2c7a4b }
.put { background: #9a6700 } .delete { background: #b3372f }
table { width: 100%; border-collapse: collapse; font-size: .92rem }
td { padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere }
td b { font-size: .8em; font-weight: 600 } td:first-child { white-space: nowrap }
small { color: var(--soft) }`.replaceAll(/\s+/g, ' ');

const pages: Record<string, { type: string; write: () => string }> = {
  '/openapi.json': {
    type: 'application/json; charset=utf-8',
    write: () => JSON.stringify(describeApi()),
  },
  '/docs': {
    type: 'text/html; charset=utf-8',
    write: () => {
      const document = describeApi();
      const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
      );
      const groups = document.tags.map(({ name }) => {
        const own = operations.filter(({ operation }) => operation.tags.includes(name));
        return `<h2>${text(name)}</h2>${own.map(section).join('')}`;
      });
      const shapes = Object.entries(document.components.schemas).map(
        ([name, schema]) =>
          `<details id="${name}"><summary><code>${name}</code></summary>${fields(schema)}</details>`,
      );
      return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(document.info.title)}</title><style>${style}</style></head><body>
<header><h1>${text(document.info.title)}</h1><p>${text(document.info.description)}</p>
<p>Send the API key as <code>x-api-key</code>.
For programs: <a href="/openapi.json">openapi.json</a>. To play:
<a href="/_emulator/">/_emulator/</a>.</p></header>
<main>${groups.join('')}<h2>Shapes</h2>${shapes.join('')}</main></body></html>`;
    },
  },
};

/**
 * Handles GET /openapi.json and GET /docs, which need no key and have no limit. Returns undefined
 * for any other request.
 */
export function answerPage({ method, path }: { method: string; path: string }): Answer | undefined {
  const page = method === 'GET' && Object.hasOwn(pages, path) ? pages[path] : undefined;
  return page && { status: 200, headers: { 'content-type': page.type }, body: page.write() };
}
