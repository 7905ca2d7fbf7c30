import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

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
