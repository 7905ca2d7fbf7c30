/** Describes the API as OpenAPI 3.1, based on the schemas that check requests and responses. */
import { z } from 'zod';
import type { Operation } from '../api/operation.ts';
import { operations } from '../api/operation-table.ts';
import { answers, type AnswerName } from '../api/answer-schemas.ts';
import { described } from './operation-texts.ts';

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** A parameter of an operation. */
export interface Parameter {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  schema: unknown;
}

interface Response {
  description: string;
  headers?: Record<string, unknown>;
  content: { 'application/json': { schema: unknown } };
}

/** An operation in the document. */
export interface DescribedOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  parameters: Parameter[];
  requestBody?: { required: true; content: { 'application/json': { schema: JsonSchema } } };
  responses: Record<string, Response>;
  security?: Record<string, never[]>[];
}

/** The OpenAPI document. */
export interface Document {
  openapi: '3.1.0';
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  security: Record<string, never[]>[];
  tags: { name: string }[];
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, unknown> };
}

const about = [
  'A local emulator of the platform: strict, stateful, and honest about what its specification',
  'leaves open. What the specification does not show is said to be "not shown", with what is done',
  'here instead. HTTPS is not enforced here. 500 is never answered unless a fault is asked for. The',
  'headers of the rate limits come with every answer to a known key or session.',
].join(' ');

/** Returns the OpenAPI document. */
export function describeApi(): Document {
  const paths: Document['paths'] = {};
  for (const operation of operations) {
    const one = { [operation.method.toLowerCase()]: describe(operation) };
    paths[operation.path] = { ...paths[operation.path], ...one };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Email platform, emulated', version: '1', description: about },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: [...new Set(Object.values(described).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: answerSchemas(),
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

function describe({ route, path, schemas, session, sends, brief }: Operation): DescribedOperation {
  const { tag, summary, description, success, refusals } = described[route];
  const headers = limitHeaders(sends);
  const refusal = answerOf(brief ? 'BriefRefusal' : 'Refusal');
  const always = {
    401: session ? 'No valid session' : 'Missing, invalid, revoked or disabled API key',
    403: session ? 'User is not a member of an organization' : 'Unauthorized access',
  };
  const responses: Record<string, Response> = {
    [success.status]: { description: summary, headers, ...answerOf(success.answer) },
  };
  for (const [status, message] of Object.entries({ ...always, ...refusals })) {
    const isKnown = status !== '401';
    const body = status === '401' && !session ? answerOf('Refusal') : refusal;
    responses[status] = { description: message, ...(isKnown && !session && { headers }), ...body };
  }
  responses['429'] = {
    description: 'Rate limit exceeded',
    headers: { ...headers, 'Retry-After': header('Whole seconds to wait.') },
    ...answerOf('Refusal'),
  };
  return {
    operationId: route,
    tags: [tag],
    summary,
    description,
    parameters: [...pathParameters(path), ...queryParameters(schemas.query)],
    ...(schemas.body && {
      requestBody: { required: true, content: json(toSchema(schemas.body)) },
    }),
    responses,
    ...(session && { security: [{ session: [] }] }),
  };
}

function pathParameters(path: string): Parameter[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
}

function queryParameters(schema: z.ZodType | undefined): Parameter[] {
  const { properties = {}, required = [] } = schema ? toSchema(schema) : {};
  return Object.entries(properties).map(([name, property]) => {
    return { name, in: 'query', required: required.includes(name), schema: property };
  });
}

function limitHeaders(sends: boolean): Record<string, unknown> {
  return {
    'X-RateLimit-Limit': header('How many requests the window allows.'),
    'X-RateLimit-Remaining': header('How many are left.'),
    ...(sends
      ? { 'X-RateLimit-Reset': header('When the window ends, in seconds since the epoch.') }
      : { 'X-RateLimit-Window': header('The length of the window in seconds.') }),
  };
}

function header(description: string): object {
  return { description, schema: { type: 'number' } };
}

function json<T>(schema: T): { 'application/json': { schema: T } } {
  return { 'application/json': { schema } };
}

function answerOf(name: AnswerName): Pick<Response, 'content'> {
  return { content: json({ $ref: `#/components/schemas/${name}` }) };
}

function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: simplify,
  });
  return rest;
}

/** Returns every response schema, with a reference wherever one schema contains another. */
function answerSchemas(): Record<string, JsonSchema> {
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
  return named;
}

/**
 * Removes details that do not help a reader, such as the bounds of every number and the pattern of
 * a date.
 */
function simplify({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
