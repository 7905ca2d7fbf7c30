/** The defaults that the mirrors of a folder share. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { Invalid } from '../../src/domain/errors.ts';
import { scratchFolder } from '../support/waiting.ts';

const own = 'mirror: acme\nsnapshot: state/acme.sqlite\n';
const platform = 'platform: { url: https://api.example.com, apiKey: k }\n';
const templates = 'templates: { source: { type: directory, path: t } }\n';

function folderWith(files: Record<string, string>) {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const file = join(folder, 'acme.yaml');
  return {
    folder,
    load: (env: Record<string, string> = {}) => loadConfig(file, env),
    mistakes(env: Record<string, string> = {}): string[] {
      try {
        loadConfig(file, env);
        return [];
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        return error.message.replaceAll(`${folder}/`, '').split('\n');
      }
    },
  };
}

it('fills in what the file of a mirror leaves out, key by key', () => {
  const { load, folder } = folderWith({
    'acme.yaml': `${own}platform: { apiKey: "\${ACME}" }\npolicy: { absent: keep }\n`,
    'defaults.yaml':
      'platform: { url: https://api.example.com, timeoutMs: 5000 }\n' +
      `policy: { deletes: owned, absent: opt_out }\n${templates}redis: \${REDIS_URL}\n`,
  });
  const config = load({ ACME: 'key-of-acme', REDIS_URL: 'redis://127.0.0.1:6379' });
  expect(config).toMatchObject({
    mirror: 'acme',
    snapshot: join(folder, 'state/acme.sqlite'),
    platform: { url: 'https://api.example.com', apiKey: 'key-of-acme', timeoutMs: 5_000 },
    policy: { absent: 'keep', deletes: 'owned' },
    templates: { source: { path: join(folder, 't') } },
    redis: 'redis://127.0.0.1:6379',
  });
});

it('takes a list, and a mapping of another type, from the mirror alone', () => {
  const contacts = (source: string, more = '') =>
    `contacts:\n  source: ${source}\n  id: id\n  email: mail\n${more}`;
  const { load } = folderWith({
    'acme.yaml':
      own +
      contacts('{ type: ndjson, path: a.ndjson }', '  channels: [{ id: b, subscription: s }]\n'),
    'defaults.yaml':
      platform +
      contacts(
        '{ type: csv, path: a.csv, separator: ";" }',
        '  channels: [{ id: a, subscription: r }, { id: c, subscription: t }]\n',
      ),
  });
  const { contacts: people } = load();
  expect(people?.source).toMatchObject({ type: 'ndjson' });
  expect(people?.source).not.toHaveProperty('separator');
  expect(people?.channels.map(({ id }) => id)).toEqual(['b']);
});

it('switches a default off with an empty value', () => {
  const files = {
    'acme.yaml': `${own}redis:\nschedule: null\n`,
    'defaults.yaml': `${platform}${templates}redis: redis://127.0.0.1\nschedule: { full: "0 3 * * *" }\n`,
  };
  const config = folderWith(files).load();
  expect([config.redis, config.schedule]).toEqual([undefined, undefined]);
});

it('reports each mistake in the file that contains it', () => {
  const { mistakes } = folderWith({
    'acme.yaml': `${own}policy: { optIns: perhaps }\nalerts: { refused: 200 }\n`,
    'defaults.yaml': `${platform}${templates}policy:\n  optIns: never\n  absnt: keep\nkeep: \${KEEP}\n`,
  });
  expect(mistakes().map((line) => line.split('  ').slice(0, 2).join(' '))).toEqual([
    'acme.yaml:3:19 policy.optIns',
    'acme.yaml:4:20 alerts.refused',
    'defaults.yaml:5:3 policy.absnt',
    'defaults.yaml:6:7 keep',
  ]);
});

it('ignores a mistake in a default that the mirror replaces', () => {
  const { load } = folderWith({
    'acme.yaml': `${own}platform: { apiKey: mine }\n`,
    'defaults.yaml': `platform: { url: https://api.example.com, apiKey: \${UNSET} }\n${templates}`,
  });
  expect(load().platform.apiKey).toBe('mine');
});

it.each([
  ['is no YAML', 'a: [1]]', 'defaults.yaml:1:7  is no valid YAML here'],
  ['is a list', '- a', 'defaults.yaml:1:1  is not a mapping'],
])('refuses defaults whose file %s', (_, text, expected) => {
  const { mistakes } = folderWith({ 'acme.yaml': own, 'defaults.yaml': text });
  expect(mistakes()).toEqual([expect.stringContaining(expected)]);
});

it('never leaves out defaults that are there and cannot be read', () => {
  const { mistakes, folder } = folderWith({ 'acme.yaml': own + platform + templates });
  symlinkSync(join(folder, 'nowhere'), join(folder, 'defaults.yaml'));
  expect(mistakes()).toEqual([expect.stringContaining('defaults.yaml')]);
});
