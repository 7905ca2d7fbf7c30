import { describe, expect, test } from 'vitest';
import { parseSeedFile } from '../../src/emulator/seed/seed-file.ts';
import { twoOrganizations, stage } from '../support/emulator/emulator-stage.ts';

function staged(text: string) {
  return stage({ apiKey: undefined, channels: [], seedFile: parseSeedFile('seed.yaml', text) });
}

/** The lines of the complaint about a file. */
function complaints(text: string): string[] {
  try {
    staged(text);
  } catch (error) {
    if (error instanceof Error && error.name === 'Invalid') return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('a seed file', () => {
  test('may hold one organization’s records at the top', () => {
    const platform = staged(`
id: org_acme
name: Acme
keys: [{ key: k_1 }]
channels: [{ id: ch_1, name: One }]
people:
  - email: Ann@Example.org
    firstName: Ann
    status: unsubscribed
    properties: { plan: pro }
    channels: { ch_1: opt_out }
    createdAt: 2026-01-02T03:04:05+01:00
templates:
  - id: tpl_1
    name: Welcome
    status: published
    variables: [{ name: a, type: string, defaultValue: null }]
domains: [{ domain: Mail.Example.org, status: active, tls: enforced }]
`);
    expect(platform.apiKey).toBe('k_1');
    expect(platform.world.state(10)).toMatchObject({
      organizationId: 'org_acme',
      name: 'Acme',
      channels: [{ id: 'ch_1', name: 'One' }],
      contacts: [
        {
          email: 'Ann@Example.org',
          status: 'unsubscribed',
          properties: { plan: 'pro' },
          channels: [{ id: 'ch_1', subscription: 'opt_out' }],
          createdAt: '2026-01-02T02:04:05.000Z',
        },
      ],
      templates: [{ id: 'tpl_1', status: 'published', organizationId: 'org_acme' }],
      domains: [{ domain: 'mail.example.org', status: 'active', systemVerified: true }],
    });
  });

  test('can be JSON, and can be empty', () => {
    expect(staged('{ "keys": [{ "key": "k_1" }] }').apiKey).toBe('k_1');
    expect(staged('').apiKey).toMatch(/^key_live_/);
  });

  test('gives a key to an organization without one, and a session to each owner', () => {
    const platform = staged('organizations: [{ id: a }, { id: b }]');
    expect(platform.organizations()).toEqual(['a', 'b']);
    const other = platform.player('b');
    expect(other.apiKey).toMatch(/^key_live_/);
    expect(other.apiKey).not.toBe(platform.apiKey);
    expect(other.world.users()).toMatchObject([{ name: 'Owner', session: /^session_/ }]);
  });

  test('makes the same world each time, to the last id', () => {
    const worlds = [1, 2].map(() => {
      const platform = twoOrganizations();
      platform.askAs('k_b', 'POST /api/domain/v1/create', { domain: 'new.example.org' });
      return platform.organizations().map((id) => platform.player(id).world.state(100));
    });
    expect(worlds[0]).toEqual(worlds[1]);
  });

  test.each([
    [
      'people:\n  - email: nope',
      'seed.yaml:2:12  people[0].email  Invalid email format → correct it',
    ],
    [
      'people:\n  - email: a@b.c\n    chanels: {}',
      'seed.yaml:3:14  people[0].chanels  is not known here → remove it, or mend its name',
    ],
    [
      'channels: [{ id: a b, name: x }]',
      'seed.yaml:1:18  channels[0].id  is no id → use letters, digits and . _ ~ - only',
    ],
    [
      'people: [{ email: a@b.c, createdAt: yesterday }]',
      'seed.yaml:1:37  people[0].createdAt  is no time → write it as 2026-11-20T12:00:00Z',
    ],
    [
      'domains:\n  - domain: -x.com',
      'seed.yaml:2:13  domains[0].domain  Invalid domain format → correct it',
    ],
    [
      'templates: [{ subject: x }]',
      'seed.yaml:1:13  templates[0].name  Invalid input: expected string, received undefined → write a value of that type',
    ],
    ['organizations: []', 'seed.yaml:1:16  organizations  is empty → add an organization'],
    [
      'organizations: [{}]\npeople: []',
      'seed.yaml:2:9  people  is not known here → remove it, or mend its name',
    ],
    [
      'organizations:\n  - id: a\n  - people: [{ email: a@b.c, channels: { ch_x: opt_in } }]',
      'seed.yaml:3:14  organizations[1].people[0]  no channel "ch_x": use one of ',
    ],
    [
      'channels:\n  - { id: c, name: x }\n  - { id: c, name: y }',
      'seed.yaml:3:5  channels[1]  channel "c" exists already: give every channel its own',
    ],
    [
      'organizations:\n  - id: a\n  - id: a',
      'seed.yaml:3:5  organizations[1]  organization "a" exists already: give every one its own id',
    ],
    [
      'organizations: [{ keys: [{ key: k }] }, { keys: [{ key: k }] }]',
      'seed.yaml:1:50  organizations[1].keys[0]  API key "k" exists already: give every API key its own',
    ],
    [
      '- a',
      'seed.yaml:1:1  (the file)  Invalid input: expected object, received array → write a value of that type',
    ],
    ['people: [', expect.stringMatching(/^seed\.yaml:1:\d+ {2}.+ → mend the YAML or JSON there$/)],
  ])('%j is refused with its place', (text, complaint) => {
    expect(complaints(text)).toEqual([complaint]);
  });

  test('reports every mistake at once', () => {
    expect(complaints('people: [{ email: x }, { email: y }]\nkeys: 1')).toHaveLength(3);
    const twice = '{ id: c, name: x }';
    expect(complaints(`channels: [${twice}, ${twice}, ${twice}]`)).toHaveLength(2);
  });
});
