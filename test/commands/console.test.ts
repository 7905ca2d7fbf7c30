/** Which configurations one console can serve, and who then sees what. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sharedAccessRules } from '../../src/console/access/access-rules.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { minimal } from '../support/config/config-folder.ts';

function filesOf(...servers: string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-console-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return servers.map((server, at) => {
    const file = join(folder, `${at}.yaml`);
    const text = minimal(server).replace('mirror: acme', `mirror: m${at}`);
    writeFileSync(file, text.replace('acme.sqlite', `${at}.sqlite`));
    return file;
  });
}

test('one configuration named twice is refused in one line', async () => {
  const [file = ''] = filesOf('');
  const { code, err } = await calling(['console', '--port', '0', '-c', file, file]);
  expect([code, err]).toEqual([2, expect.stringMatching(/are both named m0 → give each/)]);
  expect(err).not.toContain('bug');
});

test('two files of users are refused', async () => {
  const files = filesOf('server: { users: a.yaml }', 'server: { users: b.yaml }');
  const { code, err } = await calling(['console', '--port', '0', '-c', ...files]);
  expect([code, err]).toEqual([2, expect.stringContaining('name different users')]);
});

test.each([
  ['true', 'true', true],
  ['true', 'false', false],
  ['false', 'true', false],
])('viewers see addresses if %s and %s: %s', (one, other, sees) => {
  const proxy = 'proxyUser: { header: x-user, from: [127.0.0.1] }';
  const configs = filesOf(
    `server: { ${proxy}, viewersSeeAddresses: ${one} }`,
    `server: { viewersSeeAddresses: ${other} }`,
  ).map((file) => loadConfig(file, {}));
  expect(sharedAccessRules(configs).viewersSeeAddresses).toBe(sees);
  const without = filesOf('', `server: { ${proxy}, viewersSeeAddresses: ${one} }`);
  const rules = sharedAccessRules(without.map((file) => loadConfig(file, {})));
  expect([rules.proxy?.header, rules.viewersSeeAddresses]).toEqual(['x-user', false]);
});
