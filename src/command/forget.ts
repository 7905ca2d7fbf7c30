import type { Command } from 'commander';
import { forget, type Certificate } from '../sync/forget.ts';
import { personOptions, withPerson } from './person.ts';
import type { Shell } from './shell.ts';
import { counted, instant } from './words.ts';

export function options(command: Command): void {
  personOptions(command).addHelpText(
    'after',
    '\nOpts the person out of everything, deletes every contact of the address on the platform, and\n' +
      'takes them out of the snapshot, whoever made them and whatever policy says. Only a keyed hash\n' +
      'stays, so that no run brings them back; `allow` takes that back. Remove them from the CRM too.\n' +
      'Backups that were made before still hold them.',
  );
}

export async function run(command: Command, shell: Shell): Promise<number> {
  return withPerson(command, shell, async ({ mirror, kind, key, hash }) => {
    const { stop: signal, abort } = shell;
    const done = await forget(mirror, { kind, key }, { signal, abort });
    const { erased, purged, entry, failure } = done;
    const document = {
      mirror: mirror.name,
      person: hash,
      at: instant(done.at),
      found: erased?.found ?? null,
      optedOut: erased?.optedOut ?? null,
      deleted: erased?.deleted ?? null,
      verified: erased !== undefined,
      purged: purged ?? null,
      entry: { ...entry, since: instant(entry.since) },
      reason: failure ?? null,
    };
    const lines = linesOf(`${hash} of ${mirror.name}`, done);
    return { document, lines, failed: failure !== undefined };
  });
}

function linesOf(who: string, { at, erased, purged, entry, failure }: Certificate): string[] {
  const ledger =
    `  ledger    entry ${entry.seq} of ${entry.ledger}, since ${instant(entry.since)}: ` +
    'nobody brings this person back';
  if (!erased || !purged) {
    return [`${who} is not wholly forgotten: ${failure ?? ''}`, ledger, '  Run it again.'];
  }
  const { found, optedOut, deleted } = erased;
  const rows = Object.values<number>({ ...purged }).reduce((sum, count) => sum + count, 0);
  return [
    `${who} is forgotten, ${instant(at)}`,
    `  platform  ${counted(found, 'contact')} found, ${counted(optedOut, 'subscription')} opted out, ` +
      `${deleted} deleted; looked for again: none is left`,
    `  snapshot  ${counted(rows, 'row')} dropped, the file written anew`,
    ledger,
  ];
}
