import {
  type Called,
  shellWord,
  naming,
  onPerson,
  by,
  looking,
} from '../compose/command-options.ts';
import { type Certificate, forget } from '../engine/erasure/forget-person.ts';
import { filesAside } from '../store/database/snapshot-folder.ts';
import { explain, exitCode } from '../compose/output/failure-report.ts';
import { withWords } from '../app/remote/worker-handover.ts';
import { see } from '../views/lookup/seen-mirror.ts';
import { keyOfHash } from '../views/lookup/person-names.ts';
import { withPerson } from '../app/run/person-command.ts';
import type { Section } from '../views/sections.ts';
import { Invalid } from '../domain/errors.ts';
import { type CommandModule, type Shell, operatorName } from '../compose/process-shell.ts';
import { counted } from '../domain/values/counted.ts';
import { instant } from '../compose/output/format-values.ts';
import { all, type Entry } from '../domain/do-not-contact.ts';
import { allow } from '../engine/erasure/person-decisions.ts';
import { reasonOf, requiredText } from '../app/run/flag-values.ts';

const forgetOptions = { ...naming, ...onPerson, yes: 'agree to it, and ask nothing' };

const allowOptions = {
  ...looking,
  ...onPerson,
  'reason <text>': {
    text: 'why; the do-not-contact list keeps it, with the date',
    isRequired: true,
  },
  ...by,
};

export const parts = {
  forget: {
    options: forgetOptions,
    help: `
Opts the person out of everything, deletes every contact of the address on the platform, and
removes them from the snapshot, no matter who created them or what policy says. Only a keyed hash
stays, so that no run brings them back; \`allow\` takes that back. Remove them from the CRM too.
Other addresses that the same CRM record had are named, and not changed: forget each that is the
same person. Older backups still contain the person. On a terminal it asks; elsewhere it needs
--yes and the address, because nobody can see which person a hash means.`,
    run: runForget,
  },
  allow: {
    options: allowOptions,
    help: `
Removes the entries of the do-not-contact list for this address, and for the ids that the CRM has
for it: an erasure, and what else the list remembers of an earlier contact. An entry of another
address that was found by such an id stays with that address. If the contact vanished from the
platform, its record in the snapshot is dropped too: the person counts as never seen. If the
mirror opted the person out because the CRM said so, any CRM record that says in may opt them in
again. What the platform shows of the person still counts: somebody who unsubscribed, or opted out
of a channel there, stays out.`,
    run: runAllow,
  },
} satisfies Record<string, CommandModule>;

/** Forgets one person. The exit code is 0 only if everything is done and certified. */
async function runForget(called: Called<typeof forgetOptions>, shell: Shell): Promise<number> {
  const { yes = false } = called.flags;
  return withPerson(
    called,
    shell,
    async ({ mirror, contacts, key, hash, names, path, flags }) => {
      const { stop: signal, abort } = shell;
      const by = operatorName(shell);
      const told = await forget(mirror, { contacts, key, by }, { signal, abort });
      const { done, entry, crm, failure, verified, scrubbed } = told;
      const also = told.also.map((other) => names({ kind: 'contact', key: other }));
      const copies = filesAside(path);
      const document = {
        mirror: mirror.name,
        person: hash,
        at: instant(told.at),
        found: done.found?.length ?? null,
        optedOut: done.found ? done.optedOut : null,
        deleted: done.found ? done.deleted.length : null,
        verified,
        purged: done.purged ?? null,
        /** Whether the file no longer contains anything that was dropped. */
        scrubbed,
        entry: { ...entry, since: instant(entry.since) },
        /** How the CRM was read. If it was not read, the entry may lack ids of the person. */
        crm,
        /** Addresses that have no other reference once this one is removed from the snapshot. */
        also,
        /** Snapshots that were set aside, from which nothing is dropped. */
        copies,
        reason: failure ? explain(failure).text : null,
      };
      const why = failure ? `: ${explain(failure).text}` : '';
      const end = isDone(told) ? `forgotten, ${instant(told.at)}` : `not wholly forgotten${why}`;
      // Only people can say whether two addresses are one person: families share them.
      const many = also.length === 1 ? 'another address' : `${also.length} other addresses`;
      const alsoWhat =
        `the same CRM record, or contact, is known under ${many}, and nothing was done there. ` +
        'For each that is the same person:';
      const commands = also.map(
        (name) => `crm-mirror forget ${shellWord(name)} -c ${shellWord(flags.config)}`,
      );
      const words = 'may still contain the person → delete';
      const section: Section = {
        title: `${hash} of ${mirror.name} is ${end}`,
        facts: [
          ...factsOf(told),
          ...(also.length > 0 ? [['also', alsoWhat] as const] : []),
          ...commands.map((line) => ['', line] as const),
          ...copies.map((file) => ['copy', `${file} was set aside: it ${words} it`] as const),
          ['backups', `those made before this ${words} them, or forget again after restoring one`],
        ],
        lines: failure ? ['Run it again.'] : [],
      };
      // Work stopped by a signal counts as an interruption, whatever its own error.
      const code = failure
        ? explain(signal.aborted ? signal.reason : failure).code
        : exitCode(isDone(told) ? 'done' : 'failed');
      return { document, sections: [section], code };
    },
    async (word, config) => {
      if (shell.canAsk !== true && word.startsWith('#')) {
        throw new Invalid(`forget ${word}: a hash does not show which person it means`, {
          fix: 'give the address with --yes, or run it on a terminal, where it shows the address and asks',
        });
      }
      if (yes) return shell;
      if (shell.canAsk !== true) {
        throw new Invalid('forget: nobody is forgotten without agreement', {
          fix: 'check the address and the mirror, then give --yes',
        });
      }
      const { snapshot } = see(config, true);
      const known = snapshot && word.startsWith('#') ? await keyOfHash(word, snapshot) : undefined;
      snapshot?.close();
      const { askAgreement } = await import('../app/init/talk.ts');
      const isAgreed = await askAgreement(shell, {
        command: 'forget',
        question:
          `Forget ${known ?? word} for good? Every contact of this address at ${config.platform.url} is opted ` +
          `out and deleted, and the mirror ${config.mirror} forgets the person.`,
        yes: 'The erasure begins.',
        no: 'Nobody was forgotten.',
      });
      if (!isAgreed) return undefined;
      // A worker that has the mirror cannot ask again.
      return withWords(shell, '--yes');
    },
  );
}

function isDone({ failure, crm, verified }: Certificate): boolean {
  return failure === undefined && crm.certified && verified;
}

type Fact = readonly [name: string, text: string];

function factsOf({ done, entry, crm, verified, scrubbed, failure }: Certificate): Fact[] {
  const { found, optedOut, deleted, purged } = done;
  const isSearched = verified || failure === undefined;
  const left = verified ? 'none remains' : 'none found, but one may remain';
  const proof = isSearched ? `searched again: ${left}` : 'not searched again';
  const rows = Object.values<number>({ ...purged }).reduce((sum, count) => sum + count, 0);
  const file = scrubbed ? 'the file written anew' : 'the file not written anew yet';
  const facts: Fact[] = [];
  if (found) {
    const all = `${counted(found.length, 'contact')} found, ${counted(optedOut, 'subscription')}`;
    facts.push(['platform', `${all} opted out, ${deleted.length} deleted; ${proof}`]);
    if (isSearched && !verified) {
      const short = 'the list of contacts was shorter than its own count, as while others delete: ';
      const missed = 'a contact whose address is spelled otherwise may be missing. Run it again.';
      facts.push(['', short + missed]);
    }
    if (purged) facts.push(['snapshot', `${counted(rows, 'row')} dropped, ${file}`]);
  }
  const place = `entry ${entry.seq} of ${entry.ledger}, since ${instant(entry.since)}`;
  facts.push(['list', `do-not-contact ${place}: no run brings this person back`]);
  if (!crm.certified) {
    // Without the person's ids, a new address in the CRM counts as a new person.
    const risk =
      'ids of the person may be missing from the entry: should the CRM give the record another ' +
      'address, that would be mirrored. Run it again once the CRM can be read.';
    facts.push(['CRM', `${crm.read ? 'not read for certain' : 'not read'}: ${crm.why ?? ''}`]);
    facts.push(['', risk]);
  }
  return facts;
}

/** Releases what would add the entries again. Exit code 1 if the CRM could not be read. */
async function runAllow(called: Called<typeof allowOptions>, shell: Shell): Promise<number> {
  const fix = 'say why this person may come back';
  const reason = requiredText('--reason', called.flags.reason, fix);
  const by = reasonOf(called.flags.by ?? operatorName(shell), '--by') ?? '';
  return withPerson(called, shell, async ({ mirror, contacts, key, hash }) => {
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
