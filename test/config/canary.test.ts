/** The values of a canary in the configuration, and what is said of a wrong one, and where. */
import { afterAll, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

it('has values for everything, and without the key there is none', () => {
  expect(load(minimal('')).policy.canary).toBeUndefined();
  expect(load(minimal('policy: { canary: {} }\n')).policy.canary).toEqual({
    percent: 2,
    floor: 25,
    waitMs: 1_800_000,
    bounds: { unsubscribed: 5, refused: 5, drift: 5 },
  });
});

it.each([
  ['percent: 101', 'policy.canary.percent'],
  ['floor: 0', 'policy.canary.floor'],
  ['wait: 0m', 'policy.canary.wait  must be greater than 0'],
  ['wait: soon', 'policy.canary.wait  is not a duration'],
  ['bounds: { unsubscribed: -1 }', 'policy.canary.bounds.unsubscribed'],
  ['bounds: { opened: 1 }', 'policy.canary.bounds.opened'],
  ['size: 5', 'policy.canary.size'],
])('%s is reported with its place', (text, expected) => {
  const [found, ...more] = mistakes(minimal(`policy:\n  canary:\n    ${text}\n`)) ?? [];
  expect(found).toMatch(/^mirror\.yaml:8:\d+ {2}/);
  expect(found).toContain(expected);
  expect(more).toEqual([]);
});
