import { expect, test } from 'vitest';
import { commandLine, withCaller, withConfig } from '../../../src/compose/command-options.ts';
import { mirrored } from '../../support/commands/mirrored-contacts.ts';

test('a command that a text quotes names the configuration, unless it is the default', () => {
  const text =
    'see `crm-mirror plan`, then `crm-mirror approve cafe`; `crm-mirror init FILE` makes one';
  expect(withConfig(text, 'config/mirror.yaml')).toBe(text);
  expect(withConfig(text, 'm.yaml')).toBe(
    'see `crm-mirror plan -c m.yaml`, then `crm-mirror approve cafe -c m.yaml`; ' +
      '`crm-mirror init FILE` makes one',
  );
  expect(withConfig('`crm-mirror plan -c b.yaml`', 'm.yaml')).toBe('`crm-mirror plan -c b.yaml`');
  expect(commandLine('plan', 'my mirror.yaml')).toBe('crm-mirror plan -c "my mirror.yaml"');
});

test.each([
  ['`crm-mirror plan`, then crm-mirror sync', '`npx crm-mirror plan`, then npx crm-mirror sync'],
  ['crm-mirror: see `crm-mirror sync --help`', 'crm-mirror: see `npx crm-mirror sync --help`'],
  ['npx crm-mirror plan', 'npx crm-mirror plan'],
  ['./node_modules/.bin/crm-mirror plan', './node_modules/.bin/crm-mirror plan'],
  [
    'crm-mirror needs Node, and crm-mirror planned it',
    'crm-mirror needs Node, and crm-mirror planned it',
  ],
])('a printed command calls the program as npm found it: %s', (text, pasted) => {
  const names = ['plan', 'sync'];
  expect(withCaller(text, names, { npm_command: 'exec' })).toBe(pasted);
  expect(withCaller(text, names, {})).toBe(text);
});

test('the remedies that a command prints name its configuration', async () => {
  const world = await mirrored();
  world.config({ guards: { optIns: { percent: 0, floor: 0 } } });
  await world.call('backfill');
  world.people([{ email: 'new@example.com', news: 'yes' }]);
  const { err } = await world.call('sync');
  expect(err).toContain(`\`crm-mirror plan -c ${world.file}\``);
});
