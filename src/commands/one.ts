import type { Command } from 'commander';
import type { Summary } from '../engine/report/run-summary.ts';
import { pass, runOptions, type PassFlags } from '../cli/run/run-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { exitCode } from '../cli/output/exit-codes.ts';

/** Declares the flags of `one`. */
export function options(command: Command): void {
  runOptions(command)
    .argument('<person>', 'an address, a CRM id, or a hash (#9cc428f416d4)')
    .addHelpText(
      'after',
      '\nReads the whole CRM, but only this person on the platform. Changes nobody else, and no\n' +
        'templates. A person who is not in the CRM does not count as missing: only full runs count\n' +
        `that. If the person is unknown, there is nothing to do: exit ${exitCode('done')}.`,
    );
}

/** Updates one person now. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<PassFlags>();
  const [who = ''] = command.args;
  return pass({ ...flags, only: 'contacts' }, shell, {
    mode: { single: who },
    writes: true,
    ended({ summary }) {
      const told = absenceWords(summary);
      if (told === undefined) return;
      if (flags.json) shell.note(told);
      else shell.print(told);
    },
  });
}

/** Explains why there was nothing to do if the CRM does not name the person. */
function absenceWords({ status, contacts }: Summary): string | undefined {
  if (status === 'failed' || contacts.desired + contacts.invalid > 0) return undefined;
  return contacts.observed > 0
    ? 'The CRM does not name this person, so nothing is asked of the platform.'
    : 'Neither the CRM nor the platform knows this person: there is nothing to do.';
}
