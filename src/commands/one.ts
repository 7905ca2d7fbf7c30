import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { pass, runOptions, type PassFlags } from '../app/run/run-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

interface Flags extends PassFlags {
  id?: string;
}

export function options(command: Command): void {
  runOptions(command)
    .argument('[person]', 'an address, a CRM id, or a hash (#9cc428f416d4)')
    .option('--id <id>', 'instead of a person: the id of a CRM record, which is read alone')
    .addHelpText(
      'after',
      '\nReads the whole CRM, but only this person on the platform. With --id it reads that record\n' +
        'alone, as an event does. Changes nobody else, and no templates. A person who is not in the\n' +
        'CRM does not count as missing: only full runs count that. If the person is unknown, there\n' +
        `is nothing to do: exit ${exitCode('done')}.`,
    );
}

/** Updates one person now. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [who] = command.args;
  const { id } = flags;
  if ((who === undefined) === (id === undefined) || id === '') {
    throw new Invalid('a person or --id is needed, and only one of them', {
      fix: 'name the person, or the id of their record in the CRM',
    });
  }
  return pass({ ...flags, only: 'contacts' }, shell, {
    mode: id === undefined ? { single: who ?? '' } : { record: id },
    writes: true,
    begins({ parts, name }) {
      const canReadOne = parts.some(({ type, source }) => type.name === 'contact' && source.one);
      if (flags.id === undefined || canReadOne) return;
      throw new Invalid(`--id: the source of ${name} cannot read a single record`, {
        fix: 'name the person instead: the whole source is read then',
      });
    },
    ended({ summary: { status, contacts } }) {
      if (status === 'failed' || contacts.desired + contacts.invalid > 0) return;
      const why =
        contacts.observed > 0
          ? 'The CRM does not name this person, so nothing is asked of the platform.'
          : 'Neither the CRM nor the platform knows this person: there is nothing to do.';
      if (flags.json) shell.note(why);
      else shell.print(why);
    },
  });
}
