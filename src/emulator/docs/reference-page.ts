/** Renders the API as one page that loads nothing. */
import { style } from './page-style.ts';
import type { DescribedOperation, Document } from './openapi-document.ts';

export function pageOf(document: Document): string {
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
}

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

/** Escapes a text for use between tags and in attributes. */
function text(plain: string): string {
  const names: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot' };
  return plain.replaceAll(/[&<>"]/g, (char) => `&${names[char]};`);
}
