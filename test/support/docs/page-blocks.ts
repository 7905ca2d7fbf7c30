import { readProject, type FileText } from '../../style/text.ts';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument, stringify } from 'yaml';
import { loadConfig } from '../../../src/config/load-config.ts';
import { Invalid } from '../../../src/domain/errors.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { anyRedis } from '../redis.ts';

// Finds the pages of the documentation and the code blocks in them.

/** One fenced code block. */
export interface CodeBlock {
  path: string;
  /** The line of the opening fence, from 1. */
  line: number;
  /** The first word after the fence: yaml, sh, text. */
  language: string;
  /** The words after it: `test`, `exits=3`. */
  words: string[];
  text: string;
}

/** Tells whether a file is a page of the documentation. */
export function isPage(path: string): boolean {
  return /^(README|CONTRIBUTING|SECURITY|AGENTS)\.md$|^docs\/.+\.md$/.test(path);
}

/** Reads every page of the documentation. */
export function readPages(): FileText[] {
  return readProject().filter(({ path }) => isPage(path));
}

/** Returns the code blocks of a page; those inside lists without their indentation. */
export function codeBlocksOf({ path, text }: FileText): CodeBlock[] {
  const fences = /^( *)```(.*)\n([^]*?)^\1``` *$/gm;
  return [...text.matchAll(fences)].map(({ index, 1: indent = '', 2: info = '', 3: body = '' }) => {
    const [language = '', ...words] = info.trim().split(/\s+/);
    return {
      path,
      line: text.slice(0, index).split('\n').length,
      language,
      words,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    };
  });
}

/** Returns `docs/page.md:12`, the place of a block. */
export function placeOf({ path, line }: CodeBlock): string {
  return `${path}:${line}`;
}

// Checks the yaml blocks of the pages with the schema that a run checks its configuration with.

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

// Runs the `sh test` blocks of a page as a reader would: one after the other in one shell, in an
// empty folder, with the command on the path and a platform behind PLATFORM_URL.

const program = fileURLToPath(new URL('../../../bin/crm-mirror.mjs', import.meta.url));

/** How long the blocks of one page may take together. */
const longestMs = 280_000;

export const isTested = ({ language, words }: CodeBlock): boolean =>
  language === 'sh' && words[0] === 'test';

/** Runs the blocks of one page. Returns what went wrong, with the place of the block. */
export async function runShell(blocks: readonly CodeBlock[]): Promise<string[]> {
  const top = mkdtempSync(join(tmpdir(), 'crm-mirror-docs-'));
  const { emulator, served } = await startPlatform();
  const needsRedis = blocks.some(({ text }) => text.includes('REDIS_URL'));
  const redis = needsRedis ? await anyRedis() : undefined;
  try {
    const folder = join(top, 'page');
    mkdirSync(folder);
    writeFileSync(join(top, 'script'), scriptOf(blocks, join(top, 'place')));
    const env = {
      PATH: `${programsIn(top)}:${process.env['PATH'] ?? ''}`,
      HOME: top,
      LANG: 'C.UTF-8',
      PLATFORM_URL: served.url,
      PLATFORM_API_KEY: emulator.apiKey,
      ...(redis && { REDIS_URL: redis.url }),
    };
    const failed = await play(join(top, 'script'), { folder, env });
    return failed === undefined
      ? []
      : [`${readFileSync(join(top, 'place'), 'utf8').trim()}  ${failed}`];
  } finally {
    await served.close();
    await redis?.close();
    emulator.close();
    rmSync(top, { recursive: true, force: true });
  }
}

/** Starts a platform with the channels ch_news and ch_product, and limits nobody meets. */
async function startPlatform() {
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    apiKey: 'key_docs',
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: ['*=1000/1'],
  });
  return { emulator, served: await serve(emulator, 0) };
}

/** Writes the programs of the path: `crm-mirror`, and an `npx` that needs no registry. */
function programsIn(top: string): string {
  const bin = join(top, 'bin');
  mkdirSync(bin);
  const write = (name: string, ...lines: string[]) => {
    writeFileSync(join(bin, name), ['#!/bin/sh', ...lines, ''].join('\n'));
    chmodSync(join(bin, name), 0o755);
  };
  write('crm-mirror', `exec "${process.execPath}" "${program}" "$@"`);
  write('npx', 'exec "$@"');
  return bin;
}

/**
 * Returns one script of all blocks, which notes where it is. A block with another exit code than 0
 * runs in a shell of its own, so that what it sets is gone after it.
 */
function scriptOf(blocks: readonly CodeBlock[], place: string): string {
  return blocks
    .flatMap((block) => {
      const code = exitCodeOf(block);
      const note = `echo '${placeOf(block)}' > '${place}'`;
      if (code === 0) return [note, block.text];
      const isIt = `[ $block_code = ${code} ] || { echo "exit code $block_code" >&2; exit 1; }`;
      return [note, 'set +e', '(set -e', block.text, ')', 'block_code=$?', 'set -e', isIt];
    })
    .join('\n');
}

function exitCodeOf({ words }: CodeBlock): number {
  const stated = words.find((word) => word.startsWith('exits='));
  return Number(stated?.slice('exits='.length) ?? 0);
}

/** Returns how the script failed; undefined: it did not. What it left running is ended with it. */
async function play(
  script: string,
  { folder, env }: { folder: string; env: NodeJS.ProcessEnv },
): Promise<string | undefined> {
  const shell = spawn('bash', ['-e', '-o', 'pipefail', script], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lines: string[] = [];
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => void lines.push(text));
  }
  const group = -(shell.pid ?? Number.NaN);
  const stop = () => {
    try {
      process.kill(group, 'SIGKILL');
    } catch {
      // Nobody of the group is left.
    }
  };
  const timer = setTimeout(stop, longestMs);
  const [code, signal] = await once(shell, 'exit');
  clearTimeout(timer);
  stop();
  if (code === 0) return undefined;
  const end = lines.join('').trimEnd().split('\n').slice(-15).join('\n  ');
  return `ended with ${code ?? signal}\n  ${end}`;
}
