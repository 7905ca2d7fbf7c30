/** Checks the yaml blocks of the pages with the schema that a run checks its configuration with. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument, stringify } from 'yaml';
import { loadConfig } from '../../../src/config/load-config.ts';
import { Invalid } from '../../../src/domain/errors.ts';
import { placeOf, type CodeBlock } from './code-blocks.ts';

type Mapping = Record<string, unknown>;

/** The least that a fragment needs around it, with every source that a fragment may rely on. */
const surroundings: readonly Mapping[] = [
  { type: 'csv', path: 'people.csv' },
  {
    type: 'http',
    url: 'https://crm.example.com/people',
    one: 'https://crm.example.com/people/{id}',
  },
  { type: 'sql', url: 'sqlite:crm.sqlite', table: 'people' },
  { type: 'hubspot', token: 'secret' },
  {
    type: 'salesforce',
    url: 'https://acme.my.salesforce.com',
    auth: { clientId: 'id', clientSecret: 'secret' },
  },
].map((source) => ({
  mirror: 'acme',
  snapshot: 'acme.sqlite',
  platform: { url: 'https://platform.example.com', apiKey: 'secret' },
  contacts: {
    source,
    id: source.type === 'salesforce' ? 'Id' : 'id',
    email: 'email',
    consentAt: 'consent_at',
    channels: [
      { id: 'ch_news', subscription: 'newsletter' },
      { id: 'ch_product', subscription: 'product' },
    ],
  },
}));

/** What the variables of an example stand for, by the last part of their names. */
const dummies: readonly [ending: RegExp, value: string][] = [
  [/REDIS_URL$/, 'redis://127.0.0.1:6379'],
  [/URL$/, 'https://platform.example.com'],
  [/PORT$/, '8080'],
  // A secret may have to be base64.
  [/$/, 'c2VjcmV0'],
];

/**
 * Returns what is wrong with a block, each line with its place; nothing for a good one. `folder` is
 * where the configuration is written to.
 */
export function mistakesOfYaml(block: CodeBlock, folder: string): string[] {
  const document = parseDocument(withDummies(block.text));
  const broken = document.errors.map(({ message }) => message.split('\n')[0] ?? '');
  const told = broken.length > 0 || block.words.length > 0 ? broken : refusals(document, folder);
  return told.map((text) => `${placeOf(block)}  ${text}`);
}

/** A whole file is checked as it is; a fragment is good if some surroundings make it valid. */
function refusals(document: { toJS(): unknown }, folder: string): string[] {
  const given = document.toJS();
  if (!isMapping(given)) return ['does not begin with a key of the configuration'];
  const wholes = 'mirror' in given ? [given] : surroundings.map((base) => merged(base, given));
  const results = wholes.map((whole) => refusalsOf(whole, folder));
  return results.toSorted((a, b) => a.length - b.length)[0] ?? [];
}

/** Merges mappings, at any depth. One with a type replaces what stood there. */
function merged(base: Mapping, given: Mapping): Mapping {
  const both = Object.entries(given).map(([key, value]) => {
    const under = base[key];
    const mergeable = isMapping(under) && isMapping(value) && !('type' in value);
    return [key, mergeable ? merged(under, value) : value];
  });
  const { apiKey: _, ...rest } = base;
  return { ...('apiKeyFile' in given ? rest : base), ...Object.fromEntries(both) };
}

function refusalsOf(whole: Mapping, folder: string): string[] {
  const file = join(folder, 'mirror.yaml');
  const key = join(folder, 'key');
  writeFileSync(key, 'secret');
  const { platform } = whole;
  const isElsewhere = isMapping(platform) && 'apiKeyFile' in platform;
  const readable = isElsewhere ? { ...whole, platform: { ...platform, apiKeyFile: key } } : whole;
  writeFileSync(file, stringify(readable));
  try {
    loadConfig(file, {});
    return [];
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    return error.message
      .split('\n')
      .map((line) => line.replace(/^\S+:\d+:\d+ +/, '').replaceAll(/ {2,}/g, ' '));
  }
}

/** Returns a text whose variables are replaced, as the program does it before it reads the YAML. */
function withDummies(text: string): string {
  return text.replaceAll(
    /(?<!\$)\$\{(\w+)(?::-[^{}]*)?\}/g,
    (_whole, name: string) => dummies.find(([ending]) => ending.test(name))?.[1] ?? '',
  );
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
