/**
 * Runs the command named in argv. This is the only place that catches every error and sets the exit
 * code. The file of a command is loaded only when the command is called, so that help is fast.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { renderLine } from './compose/output/text-style.ts';
import { defaultConfig, withConfig } from './compose/output/printed-commands.ts';
import { visibleLines } from './compose/output/visible-text.ts';
import { exitCode } from './compose/output/exit-codes.ts';
import { explain, type Failure } from './compose/output/failure-report.ts';
import type { CommandGroup, CommandModule, Shell } from './compose/process-shell.ts';
import { realShell } from './compose/real-shell.ts';

type Entry = [summary: string, load: () => Promise<CommandModule | CommandGroup>];

/** Every command under its name, in the order of the help. */
const commands: Readonly<Record<string, Entry>> = {
  demo: [
    'show a whole cycle on the embedded emulator with a sample export, explained',
    () => import('./commands/demo.ts'),
  ],
  init: [
    'propose a configuration for an export, show what it would mean, and write it',
    () => import('./commands/init.ts'),
  ],
  check: [
    'validate the configuration and reach the source and the platform, read-only',
    () => import('./commands/check.ts'),
  ],
  plan: [
    'show what a run would do; writes nothing on the platform',
    () => import('./commands/plan.ts'),
  ],
  drift: [
    'list what differs on the platform and no run mends',
    () => import('./commands/drift.ts'),
  ],
  rehearse: [
    'run on copies and an emulator of the platform: how long, and how it would end; sends nothing',
    () => import('./commands/rehearse.ts'),
  ],
  sync: ['run once: make the platform equal to the CRM', () => import('./commands/sync.ts')],
  apply: [
    'apply a plan once, if the same changes are still to be made',
    () => import('./commands/apply.ts'),
  ],
  undo: [
    'take back what an earlier run did, where that is still allowed',
    () => import('./commands/undo.ts'),
  ],
  backfill: [
    'load for the first time: a full run with progress, resumable after any interruption',
    () => import('./commands/backfill.ts'),
  ],
  worker: [
    'keep running: every mirror by its schedule and by events; needs Redis',
    () => import('./commands/worker.ts'),
  ],
  fleet: [
    'status, drain, move: the workers of a folder of mirrors, and what each of them serves',
    () => import('./commands/fleet.ts'),
  ],
  console: ['look at mirrors in the browser, and act there', () => import('./commands/console.ts')],
  one: ['run for one person only, now', () => import('./commands/one.ts')],
  status: [
    'show the state of the mirror, and what needs attention; also during a run',
    () => import('./commands/status.ts'),
  ],
  runs: [
    'list the last runs, or show one of them with its changes',
    () => import('./commands/runs.ts'),
  ],
  requests: [
    'list what was sent to the platform lately, and what it answered',
    () => import('./commands/requests.ts'),
  ],
  explain: [
    'say what would happen to one person and why, and what is known about them',
    () => import('./commands/explain.ts'),
  ],
  dossier: ['everything known of one person, signed', () => import('./commands/dossier.ts')],
  state: [
    'list, show or export what is recorded of people and templates',
    () => import('./commands/state.ts'),
  ],
  problems: [
    'what needs a person, grouped by cause: records that are invalid, rejected or in conflict',
    () => import('./commands/problems.ts'),
  ],
  unmanaged: [
    'people deleted in the CRM, or left out, and subscribed without this mirror: opt out, or accept',
    () => import('./commands/unmanaged.ts'),
  ],
  optouts: [
    'list people who unsubscribed on the platform, for the CRM; shows addresses',
    () => import('./commands/optouts.ts'),
  ],
  retry: [
    'let the next run try again what the platform refused',
    () => import('./commands/retry.ts'),
  ],
  resolve: [
    'settle a conflict of one person, with reason and evidence; sends nothing',
    () => import('./commands/resolve.ts'),
  ],
  forget: [
    'erase one person from the platform and the snapshot, for good',
    () => import('./commands/forget.ts'),
  ],
  allow: [
    'withdraw an erasure, and other entries of the do-not-contact list about a person',
    () => import('./commands/allow.ts'),
  ],
  reject: [
    'reject changes that await approval: no run makes them',
    () => import('./commands/reject.ts'),
  ],
  approve: [
    'approve changes that await approval; the next runs make them',
    () => import('./commands/approve.ts'),
  ],
  audit: [
    'who allowed what and what was sent, for years: verify, show, export',
    () => import('./commands/audit.ts'),
  ],
  pause: [
    'begin no runs until `resume`; a run in progress goes on to its end',
    () => import('./commands/pause.ts'),
  ],
  resume: ['end a pause', () => import('./commands/resume.ts')],
  rebind: [
    'move the snapshot to another URL or key of the same organization, after proof',
    () => import('./commands/rebind.ts'),
  ],
  backup: ['copy the snapshot, also while it is in use', () => import('./commands/backup.ts')],
  notify: ['test: try the receivers of notifications', () => import('./commands/notify.ts')],
  template: [
    'test: send one template to an address, its variables resolved',
    () => import('./commands/template.ts'),
  ],
  domains: [
    'list, create and verify sending domains, or see the nameservers of one',
    () => import('./commands/domains.ts'),
  ],
  'api-key': [
    'enable: switch an API key of the organization on',
    () => import('./commands/api-key.ts'),
  ],
  emulator: ["the platform's API, locally", () => import('./commands/emulator.ts')],
  schema: [
    'print the JSON Schema of the configuration, for editors',
    () => import('./commands/schema.ts'),
  ],
  completion: [
    'print the script that completes commands and options in bash, zsh or fish',
    () => import('./commands/completion.ts'),
  ],
  complete: ['complete a command line', () => import('./commands/complete.ts')],
};

/** Commands that other programs call, which the help does not list. */
const hiddenCommands: ReadonlySet<string> = new Set(['complete']);

/** Runs the command line of this process and sets its exit code. */
export async function start(): Promise<void> {
  process.exitCode = await main(process.argv.slice(2), { ...realShell(process.env), call: main });
}

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[], real: Shell): Promise<number> {
  let code = exitCode('done');
  const { shell, fail } = documented(argv, real);
  const program = new Command('crm-mirror')
    .description(
      "Keeps an email platform's contacts, subscriptions and templates equal to the CRM.",
    )
    .version(version(), '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => {
        for (const line of text.trimEnd().split('\n')) shell.print(line);
      },
      writeErr: (text) => shell.note(text.trimEnd()),
    })
    .showHelpAfterError('(crm-mirror --help lists the commands)');
  for (const [name, [summary, load]] of Object.entries(commands)) {
    const hidden = hiddenCommands.has(name);
    const command = program.command(name, { hidden }).description(summary);
    if (argv[0] !== name) continue;
    attach(command, await load(), async (run) => void (code = await run(shell)));
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      // A suggestion is on a line of its own.
      const line = error.message.replaceAll('\n', ' ');
      return error.exitCode === 0 ? code : fail({ text: line, code: exitCode('invalid') });
    }
    const fault = explain(error);
    shell.note(`crm-mirror: ${fault.text}`);
    return fail(fault);
  }
}

/** Commands whose output is meant for programs, like all JSON. */
const dataCommands: ReadonlySet<string> = new Set([
  'optouts',
  'schema',
  'state export',
  'completion',
  'complete',
]);

/**
 * Wraps the shell. Control characters are shown as their codes in text for people, and in output
 * for programs only on a terminal. `fail` returns the exit code. With --json, it also prints the
 * failure as a document if nothing has been printed yet.
 */
function documented(argv: readonly string[], real: Shell) {
  let isPrinted = false;
  const names = [argv[0] ?? '', argv.slice(0, 2).join(' ')];
  const isData = argv.includes('--json') || names.some((name) => dataCommands.has(name));
  const shown = real.terminal ? visibleLines : (text: string) => text;
  // A command that was passed to a worker is printed by its caller, whose configuration it names.
  const config = real.held ? defaultConfig() : configIn(argv);
  const print: Shell['print'] = (line) => {
    isPrinted = true;
    if (isData && typeof line === 'string') real.print(shown(line));
    else real.print(withConfig(renderLine(line, real.colored ?? false), config));
  };
  const note: Shell['note'] = (text) => real.note(visibleLines(withConfig(text, config)));
  return {
    shell: { ...real, print, note, argv },
    fail({ text, code }: Pick<Failure, 'text' | 'code'>): number {
      if (argv.includes('--json') && !isPrinted) {
        real.print(JSON.stringify({ error: text.replace(/^error: /, ''), code }, null, 2));
      }
      return code;
    },
  };
}

function configIn(argv: readonly string[]): string {
  const at = argv.findIndex((word) => /^(-c|--config)/.test(word));
  const word = argv[at] ?? '';
  if (word === '-c' || word === '--config') return argv[at + 1] ?? defaultConfig();
  return word.replace(/^(-c|--config=)/, '') || defaultConfig();
}

function attach(
  command: Command,
  module: CommandModule | CommandGroup,
  call: (run: (shell: Shell) => Promise<number>) => Promise<void>,
): void {
  if ('parts' in module) {
    for (const part of module.parts) {
      attach(command.command(part.name).description(part.summary), part, call);
    }
    return;
  }
  module.options(command);
  command.action(async () => call((shell) => module.run(command, shell)));
}

function version(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  const known = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return known ? String(manifest.version) : 'unknown';
}
