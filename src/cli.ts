/**
 * Runs the command named in argv. This is the only place that catches every error and sets the exit
 * code. The file of a command is loaded only when the command is called, so that help is fast.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import {
  commands,
  type CommandRow,
  findCommand,
  formIn,
  formOf,
  restoredByHand,
  tasks,
} from './commands/table.ts';
import {
  configVariable,
  declareOptions,
  findsExample,
  isUsual,
  withCaller,
  withConfig,
} from './compose/command-options.ts';
import { renderLine, visibleLines, wrapped } from './compose/output/text-style.ts';
import { exitCode, explain } from './compose/output/failure-report.ts';
import { type CommandForm, type Shell, realShell } from './compose/process-shell.ts';
import { Invalid } from './domain/errors.ts';

/** Runs the command line of this process and sets its exit code. */
export async function start(): Promise<void> {
  const shell = { ...realShell(process.env), call: main, formOf: formIn };
  process.exitCode = await main(process.argv.slice(2), shell);
}

/** Runs one command line and returns its exit code. */
export async function main(given: readonly string[], real: Shell): Promise<number> {
  const argv = given[0] === 'help' ? [...given.slice(1), '--help'] : given;
  const called = findCommand(argv);
  const { shell, fail } = documented(argv, real, called);
  const { width = 80 } = shell;
  if (argv[0] === 'restore') {
    real.note(`crm-mirror: ${restoredByHand}`);
    return fail(restoredByHand, exitCode('invalid'));
  }
  const program = new Command('crm-mirror')
    .version(version(), '-V, --version', 'print the version')
    .exitOverride()
    .helpCommand(false)
    .configureOutput({
      getOutHelpWidth: () => width,
      writeOut: (text) => {
        for (const line of helpLines(text, width)) shell.print(line);
      },
      writeErr: (text) => shell.note(text.trimEnd()),
    })
    .showHelpAfterError(
      called
        ? `(crm-mirror ${called.name} --help explains it)`
        : '(crm-mirror --help lists the commands)',
    );
  program.helpInformation = overview;
  for (const { name, summary, isHidden: hidden = false } of commands) {
    const words = name.split(' ');
    // The commands of a group are needed only if it is called.
    if (words.length > 1 && words[0] !== argv[0]) continue;
    const group = words.slice(0, -1).reduce(memberOf, program);
    group
      .command(words.at(-1) ?? '', { hidden })
      .description(summary)
      .helpCommand(false);
  }
  let code = exitCode('done');
  try {
    if (called?.load) {
      const module = await called.load();
      const command = called.name.split(' ').reduce(memberOf, program);
      declareOptions(command, module.options);
      if (module.help) command.addHelpText('after', `\n${module.help.replace(/^\n/, '')}`);
      const { name, example } = called;
      if (example) command.addHelpText('after', `\nExample: crm-mirror ${name} ${example}`);
      command.action(async () => {
        const given = command.options.filter(
          (option) => command.getOptionValueSource(option.attributeName()) === 'cli',
        );
        const form = formOf(called, (name) => given.some(({ long }) => long === `--${name}`));
        nameConfig(command, shell, form.effect);
        const read = {
          name: command.name(),
          flags: command.opts(),
          args: command.args,
          namesConfig: command.getOptionValueSource('config') === 'cli',
        };
        const run = async (own?: Partial<Shell>) => module.run(read, { ...shell, form, ...own });
        code = await (shell.admit ? shell.admit(form, run) : run());
      });
    }
    // The help of a group names the arguments of its commands.
    const members = called?.load
      ? []
      : commands.filter((one) => one.name.startsWith(`${called?.name} `));
    for (const { name, load } of members) {
      const { options = {} } = (await load?.()) ?? {};
      declareOptions(name.split(' ').reduce(memberOf, program), options);
    }
    await program.parseAsync(argv.length > 0 ? [...argv] : ['--help'], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      // A suggestion is on a line of its own.
      const line = error.message.replaceAll('\n', ' ');
      return error.exitCode === 0 ? code : fail(line, exitCode('invalid'));
    }
    const fault = explain(error);
    shell.note(`crm-mirror: ${fault.text}`);
    return fail(fault.text, fault.code);
  }
}

function memberOf(group: Command, word: string): Command {
  const member = group.commands.find((one) => one.name() === word);
  if (!member) throw new Error(`${group.name()} has no command ${word}`);
  return member;
}

/**
 * Has the command use the configuration that the environment names, unless it names one. Throws
 * Invalid for a command that acts, if all that was found is the example.
 */
function nameConfig(command: Command, { env, note }: Shell, effect: CommandForm['effect']): void {
  const named = env[configVariable] ?? '';
  const file: unknown = command.getOptionValue('config');
  if (file === undefined) return;
  const isDefault = command.getOptionValueSource('config') === 'default';
  if (named !== '' && isDefault) {
    command.setOptionValue('config', Array.isArray(file) ? [named] : named);
  } else if (named !== '' && typeof file === 'string') {
    command.setOptionValue('config', apartFrom(env, file));
  } else if (isDefault && command.getOptionValue('mirrors') === undefined && findsExample()) {
    const found = 'there is no mirror.yaml here, and config/mirror.yaml is the example';
    const fix = 'write one with `crm-mirror init FILE`, or name the configuration with -c';
    if (effect !== 'reads') throw new Invalid(found, { fix });
    note(`configuration: ${found}`);
  }
}

/**
 * Returns a name of the file that is not the usual one if the environment names another file, so
 * that printed commands name it.
 */
function apartFrom(env: Shell['env'], file: string): string {
  return env[configVariable] !== undefined && isUsual(file) ? `./${file}` : file;
}

/**
 * Wraps the shell. Control characters are shown as their codes in text for people, and in output
 * for programs only on a terminal. `fail` returns the exit code. With --json, it also prints the
 * failure as a document if nothing has been printed yet.
 */
function documented(argv: readonly string[], real: Shell, called: CommandRow | undefined) {
  let isPrinted = false;
  const isData = argv.includes('--json') || called?.isData === true;
  const shown = real.terminal ? visibleLines : (text: string) => text;
  // A command that was passed to a worker is printed by its caller, whose configuration it names.
  const config = real.admit ? undefined : configIn(argv, real.env);
  // On a terminal, commands are there to be pasted.
  const pasted = (text: string, isTerminal: boolean): string => {
    const whole = withConfig(text, config);
    return isTerminal && !real.admit ? withCaller(whole, firstWords, real.env) : whole;
  };
  const print: Shell['print'] = (line) => {
    isPrinted = true;
    if (isData && typeof line === 'string') real.print(shown(line));
    else real.print(pasted(renderLine(line, real.colored ?? false), real.terminal));
  };
  const note: Shell['note'] = (text) => {
    // The lines of a log are for programs, and those of a pipe for a log.
    const width = real.interactive && !text.startsWith('{') ? real.width : undefined;
    const lines = visibleLines(pasted(text, real.interactive)).split('\n');
    real.note(
      lines
        .flatMap((line) => wrapped(line, { width }))
        .map((line) => renderLine(line, false))
        .join('\n'),
    );
  };
  return {
    shell: { ...real, print, note, argv },
    fail(text: string, code: number): number {
      if (argv.includes('--json') && !isPrinted) {
        real.print(JSON.stringify({ error: text.replace(/^error: /, ''), code }, null, 2));
      }
      return code;
    },
  };
}

const firstWords = commands.flatMap(({ name }) => (name.includes(' ') ? [] : [name]));

/** Returns the configuration that a command line names. */
function configIn(argv: readonly string[], env: Shell['env']): string | undefined {
  const at = argv.findIndex((word) => /^(-c|--config)/.test(word));
  const word = argv[at] ?? '';
  const isApart = word === '-c' || word === '--config';
  const file = (isApart ? argv[at + 1] : word.replace(/^(-c|--config=)/, '')) || undefined;
  return file === undefined ? undefined : apartFrom(env, file);
}

function version(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  const known = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return known ? String(manifest.version) : 'unknown';
}

/** Returns the help: the commands of every day one by one, the others by what they are for. */
export function overview(): string {
  const [daily, ...others] = Object.entries(tasks).map(([task, about]) => ({
    task,
    about,
    members: commands.filter((one) => one.task === task && !one.isHidden),
  }));
  return [
    'Usage: crm-mirror COMMAND [options]',
    '',
    'Keeps the contacts, subscriptions and templates of an email platform equal to',
    'the CRM. COMMAND --help explains a command, --version prints the version.',
    '',
    ...(daily?.members ?? []).map(({ name, summary }) => `  ${name.padEnd(10)}${summary}`),
    '',
    ...others.flatMap(({ task, about, members }) => {
      // The group `platform` is a task of its own.
      const names = members.map(({ name }) => name.replace(new RegExp(`^${task}( |$)`), ''));
      const shown = names.filter((name) => name !== '' && !name.includes(' '));
      return [`${task}: ${shown.join(', ')}`, `  ${about}`];
    }),
    '',
  ].join('\n');
}

/**
 * Returns the lines of a help text of this width. Lines that are not indented are paragraphs; what
 * is explained in a list stays in its column.
 */
function helpLines(text: string, width: number): string[] {
  const paragraphs: string[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const last = paragraphs.at(-1) ?? '';
    const goesOn = /^\S/.test(line)
      ? /^\S/.test(last)
      : /^ {6}/.test(line) && /^ {1,5}\S/.test(last);
    if (goesOn) paragraphs.splice(-1, 1, `${last} ${line.trimStart()}`);
    else paragraphs.push(line);
  }
  return paragraphs.flatMap((line) => {
    const hang = /^ +(?:\S+ )*\S+ {2,}(?=\S)|^ */.exec(line)?.[0].length ?? 0;
    return wrapped(line, { width, hang }).map((one) => renderLine(one, false));
  });
}
