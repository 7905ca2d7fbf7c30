import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load-config.ts';
import type { Config } from '../../../src/config/config.ts';
import { Invalid } from '../../../src/domain/errors.ts';

/** A folder for configuration files, removed when the test that made it is over. */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-config-'));
  const write = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const load = (content: string | Uint8Array, env: Record<string, string> = {}): Config =>
    loadConfig(write('mirror.yaml', content), env);
  /** What is wrong with the file, a line each, without the folder; undefined when nothing is. */
  const mistakes = (content: string | Uint8Array, env: Record<string, string> = {}) => {
    try {
      load(content, env);
      return undefined;
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      return error.message.replaceAll(`${folder}/`, '').split('\n');
    }
  };
  return { folder, write, load, mistakes, remove: () => rmSync(folder, { recursive: true }) };
}

/** The least that is valid, with `extra` lines after it. */
export function minimal(extra = ''): string {
  return [
    'mirror: acme',
    'snapshot: acme.sqlite',
    'platform: { url: https://api.example.com, apiKey: k }',
    'templates: { source: { type: directory, path: t } }',
    '# and',
    extra,
  ].join('\n');
}
