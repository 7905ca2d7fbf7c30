/** The configuration's JSON Schema, from which editors complete and explain (command `schema`). */
import { z } from 'zod';
import { fileSchema } from './schema/file-schema.ts';
import type { Path } from './config-mistake.ts';

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** JSON Schema draft 7, the one that editors of YAML know best. */
export function editorSchema(): JsonSchema {
  return z.toJSONSchema(fileSchema, {
    target: 'draft-07',
    io: 'input',
    override: ({ jsonSchema }) => allowVariable(jsonSchema),
  });
}

/** Any value may come from the environment, but only a text without constraints says so itself. */
function allowVariable(schema: z.core.JSONSchema.BaseSchema): void {
  const { type, enum: values, pattern, minimum, maximum, ...rest } = schema;
  const constrained = values ?? pattern ?? (type === 'string' ? undefined : type);
  if (constrained === undefined || type === 'object' || type === 'array') return;
  const own = Object.entries({ type, enum: values, pattern, minimum, maximum });
  const plain = Object.fromEntries(own.filter(([, value]) => value !== undefined));
  for (const key of Object.keys(schema)) delete schema[key];
  Object.assign(schema, rest, { anyOf: [plain, { type: 'string', pattern: '\\$\\{' }] });
}

/** What the schema says about a path: nothing when it knows none, several where it has a choice. */
export function fieldsAt(schema: JsonSchema, path: Path): JsonSchema[] {
  const [step, ...rest] = path;
  if (step === undefined) return [schema];
  const isIndex = typeof step === 'number';
  return choicesOf(schema)
    .map(({ items, properties }) => (isIndex ? items : properties?.[step]))
    .filter(isSchema)
    .flatMap((found) => fieldsAt(found, rest));
}

/** A schema and the alternatives it offers. */
export function choicesOf(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
