/** Completion of the command line: the candidates, and the scripts in the shells themselves. */
import { completionsOf } from '../../src/commands/completion/print.ts';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { spawn } from '@lydell/node-pty';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { completionFile, completionTable } from '../support/docs/generated-parts.ts';
import { untilHolds } from '../support/waiting.ts';

const program = join(import.meta.dirname, '../../bin/crm-mirror.mjs');
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-completion-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'bin'));
symlinkSync(program, join(folder, 'bin/crm-mirror'));
mkdirSync(join(folder, 'config'));
for (const name of ['config/mirror.yaml', 'config/people.csv', 'mirror.yaml', 'a b.yaml'])
  writeFileSync(join(folder, name), '');
const env = {
  HOME: folder,
  TERM: 'xterm',
  PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter),
};

test('the table of commands is current: npm run docs writes it', async () => {
  expect(readFileSync(completionFile, 'utf8')).toBe(await completionTable());
});

/** Returns the candidates without their explanations. */
const candidates = (...words: string[]): string[] =>
  completionsOf(words).map((line) => line.split('\t')[0] ?? '');

test.each([
  { words: ['statu'], found: ['status', ':4'] },
  { words: ['platform', 'domains', ''], found: ['list', 'create', 'verify', 'nameservers', ':4'] },
  { words: ['sync', '--fu'], found: ['--full', ':4'] },
  { words: ['sync', '-c', 'mirror.yaml', '--only', ''], found: ['contacts', 'templates', ':4'] },
  { words: ['platform', 'domains', 'list', '--js'], found: ['--json', ':4'] },
  { words: ['print', 'completion', ''], found: ['bash', 'zsh', 'fish', ':4'] },
  { words: ['explain', ''], found: [':4'] },
  { words: ['nonsense', ''], found: [':4'] },
])('completes $words', ({ words, found }) => {
  expect(candidates(...words)).toEqual(found);
});

test('completes the files that an option takes', () => {
  const here = process.cwd();
  process.chdir(folder);
  onTestFinished(() => process.chdir(here));
  expect(candidates('sync', '-c', '')).toEqual(['bin/', 'config/', 'mirror.yaml', ':6']);
  expect(candidates('sync', '--config', 'config/')).toEqual(['config/mirror.yaml', ':4']);
  expect(candidates('sync', '--plan', 'config/p')).toEqual(['config/people.csv', ':4']);
  expect(candidates('sync', '-c', 'none/')).toEqual([':4']);
});

test('an unknown shell is refused with the known ones', async () => {
  const { code, err } = await calling(['print', 'completion', 'csh']);
  expect(code).toBe(2);
  expect(err).toContain('Allowed choices are bash, zsh, fish');
});

const has = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;
const bashCompletion = '/usr/share/bash-completion/bash_completion';

describe.skipIf(!has('bash') || !existsSync(bashCompletion))(
  'bash, skipped where bash-completion is not installed,',
  () => {
    /** Returns what bash offers for a line, and what it prints on the way. */
    const offers = (line: string) => {
      const words = line.split(' ');
      const script = [
        `source ${bashCompletion}`,
        'source <(crm-mirror print completion bash)',
        'source <(crm-mirror print completion bash)',
        `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
        `COMP_CWORD=${words.length - 1} COMP_LINE='${line}' COMP_POINT=${line.length}`,
        '__crm_mirror_complete 2> >(grep -v compopt >&2)',
        'printf "%s\\n" "${COMPREPLY[@]}"',
      ].join('\n');
      const { stdout, stderr } = spawnSync('bash', ['-c', script], { env, cwd: folder });
      return { found: String(stdout).trim().split('\n'), said: String(stderr) };
    };

    test('completes commands, options, values and files', () => {
      expect(offers('crm-mirror statu')).toEqual({ found: ['status'], said: '' });
      expect(offers('crm-mirror sync --fu').found).toEqual(['--full']);
      expect(offers('crm-mirror sync --only ').found).toEqual(['contacts', 'templates']);
      expect(offers('crm-mirror sync -c config/').found).toEqual(['config/mirror.yaml']);
    });

    test('does not run what has been typed', () => {
      offers('crm-mirror explain $(touch${IFS}ran) ');
      expect(existsSync(join(folder, 'ran'))).toBe(false);
    });
  },
);

describe.skipIf(!has('fish'))('fish, skipped where it is not installed,', () => {
  const offers = (line: string): string[] => {
    const script = `crm-mirror print completion fish | source; complete -C '${line}'`;
    const { stdout } = spawnSync('fish', ['-c', script], { env, cwd: folder });
    const lines = String(stdout).trim().split('\n');
    return lines.map((one) => one.split('\t')[0] ?? '');
  };

  test('completes commands, options, values and files', () => {
    expect(offers('crm-mirror statu')).toEqual(['status']);
    expect(offers('crm-mirror sync --fu')).toEqual(['--full']);
    expect(offers('crm-mirror sync --only ')).toEqual(['contacts', 'templates']);
    expect(offers('crm-mirror sync -c config/')).toEqual(['config/mirror.yaml']);
  });
});

describe.skipIf(!has('zsh'))('zsh, skipped where it is not installed,', () => {
  test.each([
    { typed: 'crm-mirror stat', shown: 'crm-mirror status ' },
    { typed: 'crm-mirror sync --fu', shown: 'crm-mirror sync --full ' },
    { typed: 'crm-mirror sync --only con', shown: 'crm-mirror sync --only contacts ' },
    { typed: 'crm-mirror sync -c mir', shown: 'crm-mirror sync -c mirror.yaml ' },
  ])('completes $typed', async ({ typed, shown }) => {
    const shell = spawn('zsh', ['-f', '-i'], { cwd: folder, cols: 120, rows: 30, env });
    let screen = '';
    shell.onData((data) => void (screen += stripVTControlCharacters(data)));
    onTestFinished(() => shell.kill('SIGKILL'));
    const loads = 'autoload -Uz compinit; compinit -u; source <(crm-mirror print completion zsh)';
    shell.write(`PS1='> '; ${loads}; echo re''ady\r`);
    await untilHolds(() => expect(screen).toContain('ready'));
    screen = '';
    shell.write(typed);
    await untilHolds(() => expect(screen).toContain(typed));
    shell.write('\t');
    await untilHolds(() => expect(screen).toContain(shown.slice(typed.length).trimEnd()));
  });
});
