/** Generates the JSON Schema of the configuration, for editors (command `schema`). */
import { z } from 'zod';
import { fileSchema } from './schema/file-schema.ts';
import type { Path } from './config-mistake.ts';

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Returns the schema as JSON Schema draft 7, which YAML editors support best. */
export function editorSchema(): JsonSchema {
  return z.toJSONSchema(fileSchema, {
    target: 'draft-07',
    io: 'input',
    // Any value may come from the environment, but only an unconstrained text accepts `${NAME}` by
    // itself.
    override({ jsonSchema: schema }) {
      const { type, enum: values, pattern, minimum, maximum, ...rest } = schema;
      const constrained = values ?? pattern ?? (type === 'string' ? undefined : type);
      if (constrained === undefined || type === 'object' || type === 'array') return;
      const own = Object.entries({ type, enum: values, pattern, minimum, maximum });
      const plain = Object.fromEntries(own.filter(([, value]) => value !== undefined));
      for (const key of Object.keys(schema)) delete schema[key];
      Object.assign(schema, rest, { anyOf: [plain, { type: 'string', pattern: '\\$\\{' }] });
    },
  });
}

/** Returns what the schema states about a path: several schemas if there is a choice, or none. */
export function fieldsAt(schema: JsonSchema, path: Path): JsonSchema[] {
  const [step, ...rest] = path;
  if (step === undefined) return [schema];
  const isIndex = typeof step === 'number';
  return choicesOf(schema)
    .map(({ items, properties }) => (isIndex ? items : properties?.[step]))
    .filter(isSchema)
    .flatMap((found) => fieldsAt(found, rest));
}

/** Returns a schema and the alternatives that it offers. */
export function choicesOf(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
