import { loadConfig } from '../../config/load-config.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import { driftGroups, driftSection, type OtherChannel } from '../../views/lookup/drift-groups.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import { codeOfStop, exitCode } from '../../compose/output/failure-report.ts';
import { operatorName, type Shell } from '../../compose/process-shell.ts';
import type { LookFlags, QuietFlags } from '../../compose/command-options.ts';
import { outletsOf } from '../../compose/run-progress.ts';
import { print } from '../snapshot-command.ts';
import { followRun } from './follow-run.ts';
import { runNow } from './run-command.ts';
import { hushed } from './run-log.ts';

/** `all`: every record is named, not three of each cause. */
export type DriftFlags = LookFlags &
  QuietFlags & { all?: true | undefined; exitCode?: true | undefined };

/** Prints what differs on the platform and no run mends. Returns the exit code. */
export async function printDrift(flags: DriftFlags, own: Shell): Promise<number> {
  const config = loadConfig(flags.config, own.env);
  const shell = hushed(own, flags, false);
  const { mirror, close } = await assemble(config, shell, { writes: false });
  const channels = new Map<string, OtherChannel>();
  const followed = followRun(flags.quiet ? { ...shell, note: () => undefined } : shell, mirror, {
    config,
    mode: 'full',
    firstLoad: false,
    writes: false,
    isForAll: true,
    outlets: outletsOf(shell),
  });
  try {
    const summary = await runNow(countingChannels(mirror, channels), shell, {
      mode: 'full',
      because: ['asked'],
      writes: false,
      only: undefined,
      by: { by: 'command', name: operatorName(shell) },
      progress: followed.progress,
    });
    const names = namesOf(mirror.snapshot, flags.addresses ?? shell.terminal);
    const most = flags.all ? Number.MAX_SAFE_INTEGER : 3;
    const sides = { mirror, summary, channels: [...channels.values()], names, most };
    const groups = driftGroups(sides);
    const { certificate, reasons, status } = summary;
    const document = { mirror: config.mirror, status, certificate, reasons, groups };
    const isRead = status !== 'failed' && status !== 'interrupted';
    const sections = isRead ? [driftSection(config.mirror, groups)] : [];
    print({ document, sections }, flags, shell);
    if (!isRead) {
      for (const reason of reasons) shell.note(`crm-mirror: ${reason}`);
      return status === 'interrupted' ? codeOfStop(shell.stop.reason) : exitCode('failed');
    }
    return flags.exitCode && groups.length > 0 ? exitCode('changes') : exitCode('done');
  } finally {
    followed.close();
    await close();
  }
}

/** Returns the mirror, which counts who is subscribed to channels that it does not name. */
function countingChannels(mirror: Mirror, channels: Map<string, OtherChannel>): Mirror {
  const [firstLimit] = mirror.pageSizes;
  const { contacts } = mirror;
  if (!contacts) return mirror;
  const list: typeof contacts.list = async (page, signal) => {
    const found = await contacts.list(page, signal);
    // Later passes show the same people again.
    if (page.limit !== firstLimit) return found;
    for (const { id, name } of found.others) {
      const one = channels.get(id) ?? { id, name, count: 0 };
      channels.set(id, { ...one, count: one.count + 1 });
    }
    return found;
  };
  return { ...mirror, contacts: { ...contacts, list } };
}
