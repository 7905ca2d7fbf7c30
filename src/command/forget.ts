import type { Command } from 'commander';
import { forget, type Certificate } from '../sync/forget.ts';
import { filesAside } from '../snapshot/aside.ts';
import { namingOptions } from './look.ts';
import { personOptions, withPerson, type PersonFlags } from './person.ts';
import type { Shell } from './shell.ts';
import { counted, instant } from './words.ts';

export function options(command: Command): void {
  personOptions(namingOptions(command)).addHelpText(
    'after',
    '\nOpts the person out of everything, deletes every contact of the address on the platform, and\n' +
      'takes them out of the snapshot, whoever made them and whatever policy says. Only a keyed hash\n' +
      'stays, so that no run brings them back; `allow` takes that back. Remove them from the CRM too.\n' +
      'Other addresses that the same CRM record had are named, and left alone: forget each that is\n' +
      'the same person. Backups that were made before still hold them.',
  );
}

export async function run(command: Command, shell: Shell): Promise<number> {
  return withPerson(command, shell, async ({ mirror, kind, key, hash, names, path, flags }) => {
    const { stop: signal, abort } = shell;
    const done = await forget(mirror, { kind, key }, { signal, abort });
    const { erased, purged, entry, failure } = done;
    const also = done.also.map((other) => names({ kind: 'contact', key: other }));
    const copies = filesAside(path);
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
      /** Named by nothing else once this address is out of the snapshot. */
      also,
      /** Snapshots that were set aside, and not purged. */
      copies,
      reason: failure ?? null,
    };
    const lines = [
      ...linesOf(`${hash} of ${mirror.name}`, done),
      ...alsoLines(also, flags),
      ...copiesLines(copies),
    ];
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

/** Whether they are the same person only somebody who can ask knows: a family shares an address. */
function alsoLines(also: readonly string[], { config }: PersonFlags): string[] {
  if (also.length === 0) return [];
  const many = also.length === 1 ? 'another address' : `${also.length} other addresses`;
  return [
    `  also      the same CRM record, or contact, is known under ${many},`,
    '            and nothing was done there. For each that is the same person:',
    ...also.map((name) => `            crm-mirror forget ${quoted(name)} -c ${quoted(config)}`),
  ];
}

function copiesLines(copies: readonly string[]): string[] {
  const words = 'may still hold the person → delete';
  return [
    ...copies.map((file) => `  copy      ${file} was set aside: it ${words} it`),
    `  backups   those made before this ${words} them, or forget again after restoring one`,
  ];
}

/** As a shell takes it for one word. */
function quoted(word: string): string {
  return /^[\w@./+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
