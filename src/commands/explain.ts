import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import { examinePerson } from '../views/lookup/person-document.ts';
import { explainedLines } from '../views/lookup/person-text.ts';
import { type LookFlags, namingOptions, print } from '../app/snapshot-command.ts';
import { keyOf, namesOf } from '../views/lookup/person-names.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

interface Flags extends LookFlags {
  offline?: true;
  verbose?: true;
}

export function options(command: Command): void {
  namingOptions(command)
    .argument('<person>', 'an address, a CRM id, or a hash (#9cc428f416d4)')
    .option('--verbose', 'print every rule that is tried')
    .option('--offline', 'do not ask the platform: use the recorded state instead')
    .addHelpText(
      'after',
      '\nReads the CRM, the snapshot and the platform, and says first what a run would do and why.\n' +
        'It changes nothing, and works during a run. It exits with 0 whatever it finds; with --json,\n' +
        '`crm.read` and `platform.read` say whether both sides could be read. Names and properties\n' +
        'are shown where addresses are.',
    );
}

/** Prints everything known about one person, what a run would do about them, and why. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [who = ''] = command.args;
  const config = loadConfig(flags.config, shell.env);
  const assembled = await assemble(config, shell, { writes: false });
  const { mirror, close } = assembled;
  try {
    const key = await keyOf(who, mirror, shell.stop);
    const addresses = flags.addresses ?? shell.terminal;
    const { document } = await examinePerson(assembled, shell, {
      config,
      key,
      offline: flags.offline ?? false,
      names: namesOf(mirror.snapshot, addresses),
      addresses,
    });
    const lines = explainedLines(document, flags.verbose === true);
    print({ document, lines }, flags, shell);
    return exitCode('done');
  } finally {
    await close();
  }
}
