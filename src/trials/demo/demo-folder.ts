/**
 * Creates a separate folder for the demo with a copy of the sample, so that nothing else is
 * touched.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDocument } from 'yaml';
import { Invalid } from '../../domain/errors.ts';

export interface Folder {
  config: string;
  people: string;
  templates: string;
  snapshot: string;
  after: string;
  state: string;
  shown(path: string): string;
  path: string;
}

const sample = fileURLToPath(new URL('../../../config/', import.meta.url));

/** Copies the sample into a new folder. Throws Invalid if `dir` is not empty. */
export function makeFolder(dir: string | undefined): Folder {
  const path = dir === undefined ? makeNumbered() : resolve(dir);
  if (dir !== undefined) mkdirSync(path, { recursive: true });
  if (dir !== undefined && readdirSync(path).length > 0) {
    throw new Invalid(`--dir ${path}: the folder is not empty; name a new one`);
  }
  const folder: Folder = {
    path,
    config: join(path, 'mirror.yaml'),
    people: join(path, 'people.csv'),
    templates: join(path, 'templates'),
    snapshot: join(path, 'acme.sqlite'),
    after: join(path, 'after-the-demo.sqlite'),
    state: join(path, 'platform.json'),
    shown,
  };
  cpSync(join(sample, 'demo/templates'), folder.templates, { recursive: true });
  writePeople(folder, readFileSync(join(sample, 'demo/people.csv'), 'utf8'));
  const example = readFileSync(join(sample, 'mirror.yaml'), 'utf8');
  const document = parseDocument(example);
  document.setIn(['snapshot'], './acme.sqlite');
  document.setIn(['contacts', 'source', 'path'], './people.csv');
  document.setIn(['templates', 'source', 'path'], './templates');
  // The comment names a schema that exists only next to the example.
  document.commentBefore =
    document.commentBefore?.replace(/^ yaml-language-server.*\n\s*\n/, '') ?? null;
  writeFileSync(folder.config, document.toString({ lineWidth: 0 }));
  return folder;
}

/**
 * Writes the export, dated three seconds back. A run waits until an export has not been written for
 * two seconds, which is unnecessary here because nobody else writes to this file.
 */
export function writePeople({ people }: Folder, text: string): void {
  writeFileSync(people, text);
  const seconds = Date.now() / 1000 - 3;
  utimesSync(people, seconds, seconds);
}

/** Creates var/demo-1, or the first free number after it; where that fails, a temporary folder. */
function makeNumbered(): string {
  for (let n = 1; ; n += 1) {
    const path = resolve('var', `demo-${n}`);
    try {
      if (mkdirSync(path, { recursive: true }) !== undefined) return path;
    } catch {
      return mkdtempSync(join(tmpdir(), 'crm-mirror-demo-'));
    }
  }
}

function shown(path: string): string {
  const near = relative('', path);
  const text = near.startsWith('..') ? path : near;
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
