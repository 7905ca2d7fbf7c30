import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Command } from 'commander';
import * as schema from '../../src/commands/schema.ts';
import type { Shell } from '../../src/cli/compose/process-shell.ts';

const printed: string[] = [];
const shell: Shell = {
  env: {},
  print: (line) => void printed.push(line),
  note: () => undefined,
  progress: () => undefined,
  terminal: false,
  interactive: false,
  abort: new AbortController().signal,
  stop: new AbortController().signal,
};

it('the committed JSON Schema is what the command prints', async () => {
  expect(await schema.run(new Command(), shell)).toBe(0);
  expect(
    readFileSync('config/mirror.schema.json', 'utf8'),
    'write it anew: node bin/crm-mirror.mjs schema > config/mirror.schema.json',
  ).toBe(`${printed.join('\n')}\n`);
});

it('names itself, and describes every field', () => {
  const text = readFileSync('config/mirror.schema.json', 'utf8');
  const found: unknown = JSON.parse(text);
  expect(found).toMatchObject({
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: expect.any(String),
    additionalProperties: false,
    properties: {
      schedule: { properties: { sentinel: { description: expect.any(String) } } },
      platform: { properties: { timeoutMs: { default: 10_000, anyOf: [{ minimum: 1 }, {}] } } },
      contacts: { properties: { channels: { items: { description: expect.any(String) } } } },
    },
  });
  expect(text).not.toContain('"$id"');
});

it('lets a variable stand for anything that is not a plain text', () => {
  const { properties } = JSON.parse(readFileSync('config/mirror.schema.json', 'utf8'));
  const variable = { type: 'string', pattern: '\\$\\{' };
  const { platform, policy, mirror } = properties;
  for (const field of [
    mirror,
    platform.properties.reserve,
    platform.properties.allowHttp,
    policy.properties.missing,
  ])
    expect(field.anyOf[1]).toEqual(variable);
});
