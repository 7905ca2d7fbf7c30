/**
 * Describes the API as OpenAPI 3.1, based on the schemas that check requests and responses, with
 * the texts of each operation; and serves it at /openapi.json, and as a self-contained page at
 * /docs.
 */
import { z } from 'zod';
import { type Operation, operations } from '../api/operation-table.ts';
import { type AnswerName, answers } from '../api/answers.ts';
import type { Answer } from '../../domain/exchange.ts';

type JsonSchema = z.core.JSONSchema.JSONSchema;

interface Response {
  description: string;
  headers?: Record<string, unknown>;
  content: { 'application/json': { schema: JsonSchema } };
}

const about = [
  'A local emulator of the platform: strict, stateful, and honest about what its specification',
  'leaves open. What the specification does not show is said to be "not shown", with what is done',
  'here instead. HTTPS is not enforced here. 500 is never answered unless a fault is asked for. The',
  'headers of the rate limits come with every answer to a known key or session.',
].join(' ');

export function describeApi() {
  const paths: Record<string, Record<string, ReturnType<typeof describe>>> = {};
  for (const operation of operations) {
    const one = { [operation.method.toLowerCase()]: describe(operation) };
    paths[operation.path] = { ...paths[operation.path], ...one };
  }
  // With a reference wherever one schema contains another.
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(answers)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    override: simplify,
  });
  const named: Record<string, JsonSchema> = {};
  for (const [name, { $id: _id, $schema: _dialect, ...schema }] of Object.entries(schemas)) {
    named[name] = schema;
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Email platform, emulated', version: '1', description: about },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: Object.values(tags).map((name) => ({ name })),
    paths,
    components: {
      schemas: named,
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'app.session_token',
          description: 'Any cookie whose name ends in .session_token.',
        },
      },
    },
  };
}

const tags: Readonly<Record<string, string>> = {
  contacts: 'Contacts',
  templates: 'Templates',
  domains: 'Domains',
  keys: 'API keys',
};

function describe(operation: Operation) {
  const { route, path, summary, description = '', query, body, session, brief } = operation;
  const headers = {
    'X-RateLimit-Limit': header('How many requests the window allows.'),
    'X-RateLimit-Remaining': header('How many are left.'),
    ...(operation.sends
      ? { 'X-RateLimit-Reset': header('When the window ends, in seconds since the epoch.') }
      : { 'X-RateLimit-Window': header('The length of the window in seconds.') }),
  };
  const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } as const };
  });
  const { properties = {}, required = [] } = query ? toSchema(query) : {};
  const inQuery = Object.entries(properties).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema };
  });
  const refusals: Record<string, string> = {
    ...((query ?? body) && { 400: 'Invalid request' }),
    401: session ? 'No valid session' : 'Missing, invalid, revoked or disabled API key',
    403: session ? 'User is not a member of an organization' : 'Unauthorized access',
    ...operation.refusals,
  };
  const [success, answer] = operation.success;
  const responses: Record<string, Response> = {
    [success]: { description: summary, headers, ...answerOf(answer) },
  };
  for (const [status, message] of Object.entries(refusals)) {
    const isKnown = status !== '401' && !session;
    const isBrief = brief && (status !== '401' || session);
    const refusal = answerOf(isBrief ? 'BriefRefusal' : 'Refusal');
    responses[status] = { description: message, ...(isKnown && { headers }), ...refusal };
  }
  responses['429'] = {
    description: 'Rate limit exceeded',
    headers: { ...headers, 'Retry-After': header('Whole seconds to wait.') },
    ...answerOf('Refusal'),
  };
  return {
    operationId: route,
    tags: [tags[route.split('.')[0] ?? ''] ?? route],
    summary,
    description,
    parameters: [...inPath, ...inQuery],
    ...(body && { requestBody: { required: true, content: json(toSchema(body)) } }),
    responses,
    ...(session && { security: [{ session: [] }] }),
  };
}

function header(description: string): object {
  return { description, schema: { type: 'number' } };
}

function json<T>(schema: T): { 'application/json': { schema: T } } {
  return { 'application/json': { schema } };
}

function answerOf(name: AnswerName) {
  return { content: json({ $ref: `#/components/schemas/${name}` }) };
}

function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: simplify,
  });
  return rest;
}

/** Removes what does not help a reader: the bounds of every number, the pattern of a date. */
function simplify({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

function fields({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties).map(([name, property]) =>
    fieldRow(name, required.includes(name), [typeOf(property)]),
  );
  return `<table>${rows.join('')}</table>`;
}

function fieldRow(name: string, isRequired: boolean, cells: readonly string[]): string {
  const first = `<code>${text(name)}</code> ${isRequired ? '<b>required</b>' : ''}`;
  return `<tr>${[first, ...cells].map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

/** Renders a schema on one line: its type, linked if it has a name, and its bounds. */
function typeOf(schema: z.core.JSONSchema._JSONSchema | undefined): string {
  const shape = typeof schema === 'object' ? schema : {};
  const { $ref: reference, type = 'anything', anyOf, items, enum: choices = [] } = shape;
  if (reference !== undefined) {
    const name = text(reference.split('/').at(-1) ?? '');
    return `<a href="#${name}">${name}</a>`;
  }
  const bounds = Object.entries(shape)
    .filter(([name]) => /^(min|max|pattern|default|const|format)/.test(name))
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  let first = anyOf ? anyOf.map(typeOf).join(' or ') : String(type);
  if (type === 'array') first = `array of ${typeOf(Array.isArray(items) ? items[0] : items)}`;
  const parts = [first];
  if (choices.length > 0) parts.push(text(choices.join(' | ')));
  if (bounds.length > 0) parts.push(`<small>${text(bounds.join(', '))}</small>`);
  return parts.join(' ');
}

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
        const sections = own.map(({ method, path, operation }) => {
          const { operationId, summary, description, parameters, requestBody, responses } =
            operation;
          const asked = parameters.map(({ name, in: place, required, schema }) =>
            fieldRow(name, required, [place, typeOf(schema)]),
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
        });
        return `<h2>${text(name)}</h2>${sections.join('')}`;
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

/** Handles GET /openapi.json and /docs, without a key or limit; undefined for other requests. */
export function answerPage({ method, path }: { method: string; path: string }): Answer | undefined {
  const page = method === 'GET' && Object.hasOwn(pages, path) ? pages[path] : undefined;
  return page && { status: 200, headers: { 'content-type': page.type }, body: page.write() };
}
