import type { Command } from 'commander';
import { type FlagsOf, looking, sinceOf } from '../compose/command-options.ts';
import type { Config } from '../config/config.ts';
import {
  optOutOf,
  optOutsOf,
  type PlatformOptOut,
} from '../records/contact/consent/platform-opt-outs.ts';
import { decodeContact } from '../records/contact/observe/contact-state.ts';
import { isExpected } from '../domain/errors.ts';
import { type Memory, withMemory } from '../store/memory/memory.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { boundMemory } from '../engine/context/do-not-contact-binding.ts';
import { factsIn } from '../engine/context/platform-knowledge.ts';
import { look } from '../app/snapshot-command.ts';
import { csvLines } from '../compose/output/write-export.ts';
import { exactInstant } from '../compose/output/format-values.ts';
import type { Shell } from '../compose/process-shell.ts';

export const options = {
  ...looking,
  'since <time>': 'only opt-outs that may be later than this: 2026-03-01T12:00:00Z, 2026-03-01, 7d',
  spreadsheet: 'write texts that a spreadsheet would take for formulas as texts',
};
type Flags = FlagsOf<typeof options>;

export const help = `
For the CRM: shows addresses, as CSV (email,crm id,channel,cause,after,by) or with --json, the
earliest first. A person with several ids in the CRM has a line for each.

  channel  one of the mirror, or * for all mail
  cause    opt_out: opted out of the channel; of all mail: unsubscribed, blocked, complaint,
           bounce or suppressed; all_mail: opted out of all mail, and which of these is not known;
           doubtful: it may be the channel's default, or our own request without an answer, so it
           is not reported to the CRM
  after    the opt-out is later than this; empty if no run saw the person subscribed
  by       the opt-out is not later than this: when a run first saw it

Lists what runs have seen. Only full runs, events and \`sync --person\` see an opt-out of a single
channel. Reads the snapshot, and the do-not-contact list for people that the CRM wants in again
after their contact was deleted. Works during a run, and changes nothing. A day begins at midnight
UTC; 7d, 12h or 30m means so long ago.`;

/** Prints the recorded opt-outs made on the platform. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  return look(flags, shell, ({ config, snapshot, now }) => {
    const since = sinceOf(flags.since, now);
    const remembered = snapshot ? rememberedIn(snapshot, config, shell) : [];
    if (!snapshot) shell.note(`crm-mirror: there is no snapshot yet at ${config.snapshot}`);
    const optOuts = (snapshot ? leavers(snapshot, since, remembered) : []).map(
      ({ after, by, ...one }) => {
        const { email, crmIds, channel, cause } = one;
        const times = { after: after === null ? null : exactInstant(after), by: exactInstant(by) };
        return { email, crmIds, channel, cause, ...times };
      },
    );
    const document = { mirror: config.mirror, since: since === null ? null : exactInstant(since) };
    const rows = optOuts.flatMap(({ email, crmIds, channel, cause, after, by }) => {
      const ids = crmIds.length === 0 ? [''] : crmIds;
      return ids.map((id) => [email, id, channel, cause, after ?? '', by]);
    });
    const head = ['email', 'crm id', 'channel', 'cause', 'after', 'by'];
    return {
      document: { ...document, optOuts },
      data: csvLines([head, ...rows], { spreadsheet: flags.spreadsheet ?? false }),
    };
  });
}

type Left = PlatformOptOut & { email: string };
type Leaver = Left & { crmIds: string[] };

/**
 * Returns all opt-outs, or those not earlier than `since`, in the order in which they became known.
 */
function leavers(
  { recordHistory, recorded, meta }: Snapshot,
  since: number | null,
  remembered: readonly Left[],
): Leaver[] {
  const isRecent = ({ by }: PlatformOptOut): boolean => since === null || by >= since;
  const found = remembered.filter(isRecent);
  const facts = factsIn({ meta });
  for (const row of recordHistory.records('contact')) {
    for (const optOut of optOutsOf(decodeContact.recorded(row), facts)) {
      if (isRecent(optOut)) found.push({ email: row.key, ...optOut });
    }
  }
  return found
    .toSorted((a, b) => a.by - b.by)
    .map((one) => ({ ...one, crmIds: recorded.originsOf('contact', one.email) }));
}

/**
 * Returns the opt-outs that only the do-not-contact list knows, of people that the CRM wants
 * subscribed; their contact was deleted, or the snapshot was lost. If the list cannot be used,
 * prints the reason and returns none.
 */
function rememberedIn(snapshot: Snapshot, config: Config, shell: Shell): Left[] {
  const barred = snapshot.recordHistory.barred('contact').filter((email) => !email.startsWith('#'));
  if (barred.length === 0) return [];
  try {
    const facts = factsIn(snapshot);
    const find = ({ list }: Memory): Left[] => {
      const { concerning } = list();
      return barred.flatMap((email) =>
        concerning({ key: email, ids: [] })
          .flatMap((entry) => optOutOf(entry, facts) ?? [])
          .map((optOut) => ({ email, ...optOut })),
      );
    };
    return withMemory(config.memory, find, boundMemory(snapshot.meta)) ?? [];
  } catch (error) {
    if (!isExpected(error)) throw error;
    shell.note(
      `crm-mirror: people who are only on the do-not-contact list are left out: ${error.message}`,
    );
    return [];
  }
}
