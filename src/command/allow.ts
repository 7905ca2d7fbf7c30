import type { Command } from 'commander';
import { Invalid } from '../model/errors.ts';
import { all, type Entry } from '../model/ledger.ts';
import { bindLedger } from '../sync/ledger.ts';
import { whoOf } from '../sync/remember.ts';
import { personOptions, withPerson, type PersonFlags } from './person.ts';
import { reasonOf } from './reason.ts';
import type { Shell } from './shell.ts';
import { instant } from './words.ts';

interface Flags extends PersonFlags {
  reason?: string;
}

export function options(command: Command): void {
  personOptions(command)
    .requiredOption('--reason <text>', 'why; the ledger keeps it, with the date')
    .addHelpText(
      'after',
      '\nTakes back what the ledger holds against this address: an erasure, and whatever else it\n' +
        'remembers of an earlier contact. What the platform itself still shows of the person counts\n' +
        'as before: who is unsubscribed there stays out.',
    );
}

/** Ends every entry of the address. Nothing is sent: the next run decides. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const reason = reasonOf(command.opts<Flags>().reason);
  if (!reason) throw new Invalid('--reason: it is empty → say why this person may come back');
  return withPerson(command, shell, async ({ mirror, kind, key, hash }) => {
    bindLedger(mirror);
    const at = mirror.clock.now();
    const who = whoOf(mirror, kind, key);
    const entries = mirror.ledger.concerning(who);
    const taken = entries.filter(({ through }) => through === 'address');
    const ends = taken.map(({ seq }) => ({ seq, why: `allow: ${reason}` }));
    if (ends.length > 0) mirror.ledger.write([{ ...who, adds: [], ends }], at);
    const others = entries.length - taken.length;
    const document = {
      mirror: mirror.name,
      person: hash,
      at: instant(at),
      reason,
      taken: taken.map(({ cause, part, by }) => ({ cause, part, since: instant(by) })),
      others,
    };
    return { document, lines: linesOf(hash, taken, others), failed: false };
  });
}

function linesOf(who: string, taken: readonly Entry[], others: number): string[] {
  const head =
    taken.length === 0 ? `The ledger holds nothing against ${who}.` : `Of ${who} taken back:`;
  return [
    head,
    ...taken.map(
      ({ cause, part, by }) =>
        `  ${cause}${part === all ? '' : ` of ${part}`}, since ${instant(by)}`,
    ),
    ...(others > 0
      ? [`  ${others} of other addresses of the same CRM record stand: name those too.`]
      : []),
  ];
}
