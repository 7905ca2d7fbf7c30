import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { all, type Entry } from '../domain/do-not-contact.ts';
import { allow, type Allowed } from '../erasure/allow-contact.ts';
import { lookOptions } from '../cli/lookup/snapshot-command.ts';
import { personOptions, withPerson, type PersonFlags } from '../cli/run/person-command.ts';
import { reasonOf } from '../cli/output/reason-option.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant } from '../cli/output/format-values.ts';

interface Flags extends PersonFlags {
  reason?: string;
}

/** Declares the flags of `allow`. */
export function options(command: Command): void {
  personOptions(lookOptions(command))
    .requiredOption('--reason <text>', 'why; the ledger keeps it, with the date')
    .addHelpText(
      'after',
      '\nTakes back what the ledger holds against this address, and the ids that the CRM has for it:\n' +
        'an erasure, and whatever else it remembers of an earlier contact. What it holds against\n' +
        'another address by such an id still stands there. Of one that vanished what the snapshot recorded, too: the\n' +
        'person counts as never seen. An opt-out that the mirror made on the word of the CRM is released:\n' +
        'any record of the CRM that says in takes it back. What the platform itself still shows of the\n' +
        'person counts as before: who is unsubscribed there, or left a channel, stays out.',
    );
}

/**
 * Removes the person's entries from the do-not-contact list, and releases whatever would add them
 * again. Sends nothing. The exit code is 1 if the CRM could not be read.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const reason = reasonOf(command.opts<Flags>().reason);
  if (!reason) {
    throw new Invalid('--reason: it is empty', { fix: 'say why this person may come back' });
  }
  return withPerson(command, shell, async ({ mirror, part, key, hash }) => {
    const { stop: signal, abort } = shell;
    const done = await allow(mirror, { part, key, reason }, { signal, abort });
    const { at, taken, freed, dropped, released, crm } = done;
    const document = {
      mirror: mirror.name,
      person: hash,
      at: instant(at),
      reason,
      taken: taken.map(told),
      /** Entries of other addresses, found through a CRM id; they stay with those addresses. */
      freed: freed.map(told),
      dropped,
      /** The channels in which an opt-out made by us, on the word of the CRM, is released. */
      released,
      /**
       * How the CRM was read. If it was not read, entries found by an id may still concern the
       * person.
       */
      crm,
    };
    return { document, lines: linesOf(hash, done), code: Number(!crm.read) };
  });
}

function told({ cause, part, by }: Entry) {
  return { cause, part, since: instant(by) };
}

function linesOf(who: string, { taken, freed, dropped, released, crm }: Allowed): string[] {
  const isNothing = taken.length + freed.length + released.length === 0;
  return [
    isNothing ? `The ledger holds nothing against ${who}.` : `Of ${who} taken back:`,
    ...released.map((channel) => `  the mirror's own opt-out of ${channel}, stated by the CRM`),
    ...taken.map((entry) => `  ${wordsOf(entry)}`),
    ...freed.map((entry) => `  ${wordsOf(entry)}, by the CRM id: it stands for another address`),
    ...(dropped
      ? ['  The record of the contact that vanished is dropped: it counts as never seen.']
      : []),
    ...(crm.read ? [] : [`  What stands by a CRM id is not known: ${crm.why ?? ''}`]),
    ...(crm.read ? [] : ['  Run it again when the CRM can be read.']),
  ];
}

function wordsOf({ cause, part, by }: Entry): string {
  return `${cause}${part === all ? '' : ` of ${part}`}, since ${instant(by)}`;
}
