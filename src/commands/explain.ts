import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { rulesOf } from '../records/contact/consent/facts.ts';
import { Interrupted, Invalid, isExpected } from '../domain/errors.ts';
import type { Contact } from '../platform/answer-schemas.ts';
import type { Platform } from '../platform/platform.ts';
import { examine, type Examined } from '../engine/examine-person.ts';
import { absenceRulesOf, assemble } from '../cli/compose/assemble-mirror.ts';
import type { Key } from '../domain/record.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { mappedColumns } from '../records/contact/observe/column-meanings.ts';
import type { RecordType } from '../records/record-type.ts';
import { type Explaining, explainedOf } from '../cli/lookup/person-document.ts';
import { explainedLines } from '../cli/lookup/person-text.ts';
import { type LookFlags, namingOptions, print } from '../cli/lookup/snapshot-command.ts';
import { keyOf, namesOf } from '../cli/lookup/person-names.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { exitCode } from '../cli/output/exit-codes.ts';

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
  const { mirror, platform, close } = assemble(config, shell, { writes: false });
  try {
    const key = await keyOf(who, mirror, shell.stop);
    const { stop, abort } = shell;
    const offline = flags.offline ?? false;
    const records: Explaining['read'][number][] = [];
    const watched = watchRecords(mirror, key, (record) => void records.push(record));
    const found = await examine(watched, { key, offline, stop, abort, progress: () => undefined });
    const { contacts } = config;
    if (!found || !contacts) throw new Invalid(`${config.mirror} has no contacts`);
    const addresses = flags.addresses ?? shell.terminal;
    const document = explainedOf({
      mirror: config.mirror,
      rules: rulesOf(contacts, config.policy, absenceRulesOf(config)),
      found,
      read: records,
      columns: mappedColumns(contacts, () => mirror.clock.now()),
      details: await detailsOf(found, platform.contacts, shell.stop),
      snapshot: mirror.snapshot,
      guards: config.guards,
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

/** Returns the mirror with a source that also passes on the person's records as they are read. */
function watchRecords(
  mirror: Mirror,
  key: Key,
  hear: (record: Explaining['read'][number]) => void,
): Mirror {
  const parts = mirror.parts.map((part) => {
    const desire: RecordType['desire'] = (value, place) => {
      const row = part.type.desire(value, place);
      if (part.type.name === 'contact' && row.key === key) hear({ place, value });
      return row;
    };
    return { ...part, type: { ...part.type, desire } };
  });
  return { ...mirror, parts };
}

/**
 * Returns the full contacts as the platform shows them. A contact that cannot be read this way is
 * left out.
 */
async function detailsOf(
  { unread, states }: Examined,
  contacts: Platform['contacts'],
  signal: AbortSignal,
): Promise<Contact[]> {
  if (unread) return [];
  const details: Contact[] = [];
  for (const { id } of states.observed) {
    try {
      const contact = await contacts.retrieve(id, { signal });
      if (contact) details.push(contact);
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      return details;
    }
  }
  return details;
}
