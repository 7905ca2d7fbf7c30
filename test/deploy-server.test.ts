/** What is shipped for a server without containers: units of systemd, and lines for cron. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { CronExpressionParser } from 'cron-parser';
import { describe, expect, onTestFinished, test } from 'vitest';
import { main } from '../src/cli.ts';

/** A folder that is removed after the test. */
function temporaryFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'crm-mirror-deploy-'));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

const root = join(import.meta.dirname, '..');
const folder = join(root, 'config/deploy');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const units = readdirSync(folder).filter((name) => /\.(service|timer)$/.test(name));
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/** Writes the units to a folder, with a program that exists, and returns what systemd says. */
function verified(change: (text: string) => string = (text) => text): string {
  const own = temporaryFolder();
  const program = join(root, 'bin/crm-mirror.mjs');
  const files = units.map((name) => join(own, name));
  for (const [at, name] of units.entries()) {
    const text = read(name).replaceAll('/usr/local/bin/crm-mirror', program);
    writeFileSync(files[at] ?? '', change(text));
  }
  const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files]);
  return `${String(stdout)}${String(stderr)}`;
}

describe.skipIf(!hasSystemd)('systemd-analyze, skipped where it is not installed,', () => {
  test('has nothing to say about the units', () => {
    expect(units).toHaveLength(3);
    expect(verified()).toBe('');
  });

  test('would name an unknown key', () => {
    expect(verified((text) => text.replace('ProtectClock', 'ProtctClock'))).toContain(
      'ProtctClock',
    );
  });
});

/** The command line of every unit and cron line, without the program. */
const lines = [
  ...units.flatMap((name) => /^ExecStart=\S+ (.*)$/m.exec(read(name))?.[1] ?? []),
  ...[...read('crontab').matchAll(/run\.sh (.*)$/gm)].map(([, line = '']) => line),
];

test.each(lines)('the command line knows: %s', async (line) => {
  const words = line.split(' ');
  const said: string[] = [];
  const { signal } = new AbortController();
  const say = (text: unknown): void => void said.push(String(text));
  const code = await main([words[0] ?? '', '--help'], {
    env: {},
    print: say,
    note: say,
    progress: say,
    terminal: false,
    interactive: false,
    stop: signal,
    abort: signal,
  });
  expect(code).toBe(0);
  for (const flag of words.filter((word) => word.startsWith('-')))
    expect(said.join('\n')).toContain(flag);
});

test('every unit starts one command, and the timer starts the unit of its name', () => {
  expect(lines).toHaveLength(5);
  for (const name of units.filter((one) => one.endsWith('.timer')))
    expect(units).toContain(name.replace('.timer', '.service'));
});

test('cron starts no fast run in the minutes of the full run', () => {
  const patterns = [...read('crontab').matchAll(/^([\d*/,-]+(?: [\d*/,-]+){4}) +\S+run\.sh/gm)];
  expect(patterns).toHaveLength(3);
  for (const [, pattern = ''] of patterns) CronExpressionParser.parse(pattern);
  expect(patterns[0]?.[1]).toBe('7-59/15 0-2,4-23 * * *');
  expect(patterns[1]?.[1]).toBe('15 3 * * *');
});

test.each([
  { code: 0, prints: '' },
  { code: 75, prints: '' },
  { code: 3, prints: 'exit code 3\nsync --fast -c DIR/mirror.yaml key\n' },
])('run.sh prints only problems, and logs everything: exit code $code', ({ code, prints }) => {
  const own = temporaryFolder();
  const bin = join(own, 'bin');
  mkdirSync(bin);
  writeFileSync(join(own, 'env'), 'PLATFORM_API_KEY=key\n');
  writeFileSync(
    join(bin, 'crm-mirror'),
    `#!/bin/sh\necho "$@" "$PLATFORM_API_KEY"\nexit ${code}\n`,
  );
  chmodSync(join(bin, 'crm-mirror'), 0o755);
  const { status, stdout, stderr } = spawnSync(join(folder, 'run.sh'), ['sync', '--fast'], {
    env: {
      PATH: [bin, process.env['PATH']].join(delimiter),
      CRM_MIRROR_DIR: own,
      CRM_MIRROR_STATE: own,
    },
  });
  expect({ status, stderr: String(stderr) }).toEqual({ status: code, stderr: '' });
  expect(String(stdout).replace(own, 'DIR')).toBe(prints);
  const log = join(own, 'crm-mirror.log');
  expect(readFileSync(log, 'utf8')).toBe(`sync --fast -c ${own}/mirror.yaml key\n`);
  expect(statSync(log).mode & 0o777).toBe(0o600);
});
