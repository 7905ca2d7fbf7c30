import type { Command } from 'commander';
import { Invalid } from '../model/errors.ts';
import { all } from '../model/ledger.ts';
import { allow, type Allowed } from '../sync/allow.ts';
import { lookOptions } from './look.ts';
import { personOptions, withPerson, type PersonFlags } from './person.ts';
import { reasonOf } from './reason.ts';
import type { Shell } from './shell.ts';
import { instant } from './words.ts';

interface Flags extends PersonFlags {
  reason?: string;
}

export function options(command: Command): void {
  personOptions(lookOptions(command))
    .requiredOption('--reason <text>', 'why; the ledger keeps it, with the date')
    .addHelpText(
      'after',
      '\nTakes back what the ledger holds against this address: an erasure, and whatever else it\n' +
        'remembers of an earlier contact; of one that vanished what the snapshot recorded, too: the\n' +
        'person counts as never seen. What the platform itself still shows of the person counts as\n' +
        'before: who is unsubscribed there stays out.',
    );
}

/** Ends every entry of the address, and what would write it again. Nothing is sent by it. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const reason = reasonOf(command.opts<Flags>().reason);
  if (!reason) throw new Invalid('--reason: it is empty → say why this person may come back');
  return withPerson(command, shell, async ({ mirror, kind, key, hash }) => {
    const done = allow(mirror, { kind, key }, reason);
    const { at, taken, others, dropped } = done;
    const document = {
      mirror: mirror.name,
      person: hash,
      at: instant(at),
      reason,
      taken: taken.map(({ cause, part, by }) => ({ cause, part, since: instant(by) })),
      others,
      dropped,
    };
    return { document, lines: linesOf(hash, done), failed: false };
  });
}

function linesOf(who: string, { taken, others, dropped }: Allowed): string[] {
  const head =
    taken.length === 0 ? `The ledger holds nothing against ${who}.` : `Of ${who} taken back:`;
  return [
    head,
    ...taken.map(
      ({ cause, part, by }) =>
        `  ${cause}${part === all ? '' : ` of ${part}`}, since ${instant(by)}`,
    ),
    ...(dropped
      ? ['  The record of the contact that vanished is dropped: it counts as never seen.']
      : []),
    ...(others > 0
      ? [`  ${others} of other addresses of the same CRM record stand: name those too.`]
      : []),
  ];
}
