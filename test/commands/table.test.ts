/** The table of the commands: what other parts rely on, and what `restore` is answered with. */
import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { commands, findCommand, formIn, restoredByHand } from '../../src/commands/table.ts';
import { declareOptions } from '../../src/compose/command-options.ts';
import { overview } from '../../src/cli.ts';
import { calling, mirrored } from '../support/commands/mirrored-contacts.ts';

const called = commands.filter(({ load }) => load);

test('no name stands twice, and each command has a group', () => {
  const names = commands.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) {
    const group = name.split(' ').slice(0, -1).join(' ');
    if (group !== '')
      expect([name, findCommand(group.split(' '))?.load]).toEqual([name, undefined]);
  }
});

test.each(called.map((row) => [row.name, row] as const))(
  '%s is as its row says',
  async (_, row) => {
    const command = new Command();
    declareOptions(command, (await row.load?.())?.options ?? {});
    const has = (option: string) => command.options.some(({ long }) => long === `--${option}`);
    for (const { options } of row.forms ?? [])
      expect(options.filter((one) => !has(one))).toEqual([]);
    const words = row.example?.match(/"[^"]*"|\S+/g);
    if (words) command.exitOverride().parse(words, { from: 'user' });
    // What changes nothing is never given to a worker.
    if (row.effect === 'reads') expect(row.where).toBe('here');
  },
);

test.each([
  [['sync'], { effect: 'run', where: 'alone' }],
  [['sync', '--person=a@example.com'], { effect: 'run', where: 'beside' }],
  [['sync', '--id=7', '--json'], { effect: 'run', where: 'beside' }],
  [['sync', '--plan=plan.json'], { effect: 'run', where: 'alone' }],
  [['undo', 'last'], { effect: 'run', where: 'alone' }],
  [['undo', 'last', '--dry-run'], { effect: 'reads', where: 'here' }],
  [['forget', 'a@example.com'], { effect: 'person', where: 'beside', isUrgent: true }],
  [['retry'], { effect: 'steers', where: 'beside' }],
  [['retry', 'a@example.com', '--read-again'], { effect: 'person', where: 'beside' }],
  [['audit', 'verify'], { effect: 'reads', where: 'here' }],
  [['approve', 'beef'], { effect: 'steers', where: 'beside' }],
])('what %j does', (argv, form) => {
  expect(formIn(argv)).toMatchObject(form);
});

test('restore is answered with how it is done', async () => {
  const { code, out, err } = await calling(['restore', 'acme', '--to', 'web2', '--json']);
  expect({ code, err }).toEqual({ code: 2, err: `crm-mirror: ${restoredByHand}` });
  expect(JSON.parse(out)).toEqual({ error: restoredByHand, code: 2 });
});

describe('the configuration', () => {
  test.each([
    ['of -c', ['status', '-c', 'none/b.yaml'], 'none/own.yaml', 'none/b.yaml'],
    ['of CRM_MIRROR_CONFIG', ['status'], 'none/own.yaml', 'none/own.yaml'],
    ['of CRM_MIRROR_CONFIG, for several too', ['worker'], 'none/own.yaml', 'none/own.yaml'],
    ['config/mirror.yaml, which is here', ['status'], '', 'config/mirror.yaml'],
  ])('is the file %s', async (_, argv, named, file) => {
    const { code, err } = await calling(argv, { env: { CRM_MIRROR_CONFIG: named } });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(` ${file}`) });
  });

  test('is named by printed commands if it is named, but not if the environment names it', async () => {
    const world = await mirrored();
    await world.call('sync');
    const env = { CRM_MIRROR_CONFIG: world.file };
    const line = /`crm-mirror [^`]*`/;
    const { out: bare } = await calling(['status'], { env });
    const { out: named } = await world.call('status');
    expect(line.exec(bare)?.[0]).not.toContain(' -c ');
    expect(line.exec(named)?.[0]).toContain(` -c ${world.file}`);
  });
});

describe('crm-mirror alone, and --help,', () => {
  test.each([[[]], [['--help']], [['help']]])('%j prints the overview', async (argv) => {
    expect(await calling(argv)).toMatchObject({ code: 0, out: overview().trimEnd(), err: '' });
  });

  test('names each command within 80 columns', () => {
    const lines = overview().split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const words = new Set(overview().match(/[a-z]+/g));
    for (const { name, isHidden } of commands) {
      if (!isHidden) expect(words).toContain(name.split(' ')[0]);
    }
  });
});

describe('the help', () => {
  test('of a command and of a group has lines of 80 columns where the terminal is not known', async () => {
    for (const name of ['runs', 'fleet', 'unmanaged', 'export people']) {
      const { out } = await calling([...name.split(' '), '--help']);
      expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
    }
  });

  test('of a group names the arguments of its commands', async () => {
    const { out } = await calling(['fleet', '--help']);
    expect(out).toContain('drain [options] <node>');
  });

  test('is what a wrong option of a command points to', async () => {
    expect(await calling(['audit', 'show', 'ann', '--bad'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('(crm-mirror audit show --help explains it)'),
    });
  });
});
