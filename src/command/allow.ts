import type { Command } from 'commander';
import { Invalid } from '../model/errors.ts';
import { all, type Entry } from '../model/ledger.ts';
import type { Kind } from '../kind/kind.ts';
import type { Key } from '../model/record.ts';
import { bindLedger } from '../sync/ledger.ts';
import type { Mirror } from '../sync/mirror.ts';
import { whoOf } from '../sync/remember.ts';
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
    bindLedger(mirror);
    const at = mirror.clock.now();
    const who = whoOf(mirror, kind, key);
    const entries = mirror.ledger.concerning(who);
    const taken = entries.filter(({ through }) => through === 'address');
    const dropped = dropVanished(mirror, kind, key);
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
      dropped,
    };
    return { document, lines: linesOf(hash, { taken, others, dropped }), failed: false };
  });
}

/**
 * What is recorded of a contact that vanished would have the next run remember it again. First of
 * all: stopped between the two, the ledger still holds it.
 */
function dropVanished({ snapshot }: Mirror, { name }: Kind, key: Key): boolean {
  const { recorded, transaction } = snapshot;
  return transaction(() => {
    const row = recorded.get(name, key);
    if (!row || row.id !== undefined) return false;
    recorded.drop(name, key);
    return true;
  });
}

interface Allowed {
  taken: readonly Entry[];
  /** Entries of other addresses. */
  others: number;
  /** Whether the record of a contact that vanished was dropped. */
  dropped: boolean;
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
