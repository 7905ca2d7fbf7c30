import type { Command } from 'commander';
import { by, type FlagsOf, looking, onPerson } from '../compose/command-options.ts';
import { all, type Entry } from '../domain/do-not-contact.ts';
import { allow } from '../engine/erasure/person-decisions.ts';
import { withPerson } from '../app/run/person-command.ts';
import { operatorName, type Shell } from '../compose/process-shell.ts';
import { reasonOf, requiredText } from '../app/run/decider-options.ts';
import { instant } from '../compose/output/format-values.ts';

export const options = {
  ...looking,
  ...onPerson,
  'reason <text>': {
    text: 'why; the do-not-contact list keeps it, with the date',
    isRequired: true,
  },
  ...by,
};
type Flags = FlagsOf<typeof options>;

export const help = `
Removes the entries of the do-not-contact list for this address, and for the ids that the CRM has
for it: an erasure, and what else the list remembers of an earlier contact. An entry of another
address that was found by such an id stays with that address. If the contact vanished from the
platform, its record in the snapshot is dropped too: the person counts as never seen. If the
mirror opted the person out because the CRM said so, any CRM record that says in may opt them in
again. What the platform shows of the person still counts: somebody who unsubscribed, or opted out
of a channel there, stays out.`;

/**
 * Removes the person's entries from the do-not-contact list, and releases whatever would add them
 * again. Sends nothing. The exit code is 1 if the CRM could not be read.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const fix = 'say why this person may come back';
  const reason = requiredText('--reason', command.opts<Flags>().reason, fix);
  const by = reasonOf(command.opts<Flags>().by ?? operatorName(shell), '--by') ?? '';
  return withPerson(command, shell, async ({ mirror, contacts, key, hash }) => {
    const { stop: signal, abort } = shell;
    const caller = operatorName(shell);
    const done = await allow(mirror, { contacts, key, reason, by, caller }, { signal, abort });
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
      /** Entries found by an id may still concern the person if it was not read. */
      crm,
    };
    const isNothing = taken.length + freed.length + released.length === 0;
    const lines = [
      isNothing ? `The do-not-contact list has no entry for ${hash}.` : `Removed for ${hash}:`,
      ...released.map(
        (channel) =>
          `  the opt-out of ${channel} that the mirror made, because the CRM stated it or for \`undo\``,
      ),
      ...taken.map((entry) => `  ${wordsOf(entry)}`),
      ...freed.map(
        (entry) => `  ${wordsOf(entry)}, found by the CRM id: it stays for another address`,
      ),
      ...(dropped
        ? ['  The record of the vanished contact is dropped: the person counts as never seen.']
        : []),
      ...(crm.read
        ? []
        : [`  Entries that only a CRM id would find are unknown: ${crm.why ?? ''}`]),
      ...(crm.read ? [] : ['  Run it again when the CRM can be read.']),
    ];
    return { document, lines, code: Number(!crm.read) };
  });
}

function told({ cause, part, by }: Entry) {
  return { cause, part, since: instant(by) };
}

function wordsOf({ cause, part, by }: Entry): string {
  return `${cause}${part === all ? '' : ` of ${part}`}, since ${instant(by)}`;
}
