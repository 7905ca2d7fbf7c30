/** The reference of the configuration, from the schema that editors use. */
import { editorSchema } from '../../../src/config/editor-schema.ts';
import { table, type Parts } from './generated-parts.ts';

type Schema = ReturnType<typeof editorSchema>;

/** One key of the configuration. */
interface Key {
  path: string;
  schema: Schema;
  isRequired: boolean;
}

/** How the types are listed of keys whose options are on other pages. */
const elsewhere: Readonly<Record<string, (types: readonly string[]) => string>> = {
  'contacts.source': sourceLinks,
  'templates.source': sourceLinks,
  'policy.approvers': () => '[keys](approvals.md#several-approvers)',
  'policy.canary': () => '[keys](canary.md#keys)',
  'templates.canary': () => '[keys](canary.md#keys)',
  'contacts.channels[].subscription': () =>
    'text, or [words](values-and-conditions.md#ja-and-nein-words-of-your-own), a [condition](values-and-conditions.md#conditions), or an [opt-out](opt-out-columns.md)',
  'contacts.returns': (types) => `[by type](write-back.md): ${types.map(code).join(', ')}`,
};

function sourceLinks(types: readonly string[]): string {
  return `by type: ${types.map((type) => `[${type}](sources/${type}.md)`).join(', ')}`;
}

/** Returns a part for each block of the file, and for each type of source and of write-back. */
export function configurationParts(): Parts {
  const whole = editorSchema();
  const blocks = Object.entries(propertiesOf(whole)).filter(([, schema]) => isBlock(schema));
  const { contacts, templates } = propertiesOf(whole);
  const sources = [contacts, templates].flatMap((of) => typesOf(propertyOf(of, 'source')));
  const returns = typesOf(propertyOf(contacts, 'returns'));
  return {
    'top-level keys': tableOf(keysOf(whole, ''), blockLink),
    ...mapped(blocks, (name, schema) => [`keys of ${name}`, deepKeysOf(schema, `${name}.`)]),
    ...mapped(sources, (type, schema) => [`options of ${type}`, deepKeysOf(schema, '')]),
    ...mapped(returns, (type, schema) => [`write-back options of ${type}`, deepKeysOf(schema, '')]),
  };
}

function mapped(
  schemas: readonly (readonly [string, Schema])[],
  by: (name: string, schema: Schema) => [part: string, keys: Key[]],
): Parts {
  const parts = schemas.map(([name, schema]) => by(name, schema));
  return Object.fromEntries(parts.map(([part, keys]) => [part, tableOf(keys)]));
}

function tableOf(keys: readonly Key[], values: (key: Key) => string = valuesAt): string {
  const rows = keys.map((key) => {
    return [code(key.path), meaningOf(key.schema), values(key), defaultOf(key)];
  });
  return table(['Key', 'What it is', 'Values', 'Default'], rows);
}

/** The pages of blocks that are not described in the reference itself. */
const pages: Readonly<Record<string, string>> = {
  server: 'server-and-metrics.md',
  audit: 'audit.md',
  requests: 'requests.md',
  rules: 'rules-and-windows.md',
  windows: 'rules-and-windows.md',
  alerts: 'thresholds.md',
  notices: 'notifications.md',
};

/** Returns a link to the heading or the page of a block. */
function blockLink(key: Key): string {
  const page = pages[key.path];
  if (!page && !isBlock(key.schema)) return valuesAt(key);
  return `[${key.path}](${page ?? `#${key.path}`})`;
}

/** Returns what may be written there: links for what is described on other pages. */
function valuesAt({ path, schema }: Key): string {
  const list = elsewhere[path];
  return list ? list(typesOf(schema).map(([type]) => type)) : valuesOf(schema);
}

/** Returns the keys of a block and of what lies in it, `page.cursor` after `page`. */
function deepKeysOf(block: Schema, prefix: string): Key[] {
  return keysOf(block, prefix).flatMap((key) => {
    const inner = key.path in elsewhere ? [] : alternativesOf(key.schema);
    return [key, ...inner.flatMap((schema) => innerKeysOf(schema, key.path))];
  });
}

function innerKeysOf(schema: Schema, path: string): Key[] {
  const { items } = schema;
  if (!isSchema(items)) return deepKeysOf(schema, `${path}.`);
  return alternativesOf(items).flatMap((item) => deepKeysOf(item, `${path}[].`));
}

function keysOf(block: Schema, prefix: string): Key[] {
  return Object.entries(propertiesOf(block)).map(([name, schema]) => {
    const isRequired = block.required?.includes(name) ?? false;
    return { path: prefix + name, schema, isRequired };
  });
}

function meaningOf({ description = '' }: Schema): string {
  return description.replaceAll(/\$?\{\w+\}/g, code);
}

function defaultOf({ schema: { default: value }, isRequired }: Key): string {
  if (isRequired) return 'required';
  if (value === undefined || (isSchema(value) && Object.keys(value).length === 0)) return '';
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Returns what a schema allows, in a few words. */
function valuesOf(schema: Schema): string {
  const forms = new Set(alternativesOf(schema).map(formOf).filter(Boolean));
  // What is a text may be written as a number or a boolean as well.
  const isWord = ['text', 'number', '`true`, `false`'].every((form) => forms.has(form));
  return isWord ? 'text' : [...forms].join(', or ');
}

function formOf(schema: Schema): string {
  const { type, enum: words, const: word, pattern = '', items } = schema;
  if (word !== undefined) return code(String(word));
  if (words) return words.map((one) => code(String(one))).join(', ');
  if (pattern.includes('[smhd]') || pattern.includes('[smh]')) return 'duration';
  if (type === 'boolean') return '`true`, `false`';
  if (type === 'integer' || type === 'number') return rangeOf(schema);
  if (isSchema(items)) return `list of ${valuesOf(items)}`.replace(/ of $/, '');
  if (type === 'object') return mappingOf(schema);
  if (Array.isArray(type)) return type.map((one) => (one === 'string' ? 'text' : one)).join(', ');
  return type === 'string' ? 'text' : (type ?? '');
}

function rangeOf({ type, minimum, maximum }: Schema): string {
  const sort = type === 'integer' ? 'whole number' : 'number';
  if (minimum === undefined || maximum === undefined) return sort;
  return `${sort}, ${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`;
}

function mappingOf(schema: Schema): string {
  const names = Object.keys(propertiesOf(schema));
  if (names.length === 0) return 'mapping';
  return code(`{ ${names.join(', ')} }`);
}

/** Returns the alternatives of a schema, but for the one that is a variable, which all have. */
function alternativesOf(schema: Schema): Schema[] {
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
  if (choices.length === 0) return [schema];
  return choices.filter(({ pattern }) => pattern !== String.raw`\$\{`).flatMap(alternativesOf);
}

/** Returns the types that a source or a write-back may have, with the options of each. */
function typesOf(schema: Schema | undefined): [string, Schema][] {
  return (schema?.oneOf ?? []).filter(isSchema).map((option) => {
    const { type, ...others } = propertiesOf(option);
    return [String(type?.const), { ...option, properties: others }];
  });
}

function propertyOf(schema: Schema | undefined, name: string): Schema | undefined {
  return schema && propertiesOf(schema)[name];
}

function propertiesOf({ properties = {} }: Schema): Record<string, Schema> {
  const known = Object.entries(properties).filter((entry): entry is [string, Schema] =>
    isSchema(entry[1]),
  );
  return Object.fromEntries(known);
}

function isBlock(schema: Schema): boolean {
  return Object.keys(propertiesOf(schema)).length > 0;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function code(text: string): string {
  return `\`${text}\``;
}
