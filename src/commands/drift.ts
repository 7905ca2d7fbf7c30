import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { counted, withCommas } from '../domain/values/counted.ts';
import { renderProblem } from '../domain/errors.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type DriftGroup, driftGroups, type OtherChannel } from '../views/lookup/drift-groups.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import { type LookFlags, namingOptions } from '../app/snapshot-command.ts';
import { codeOfStop, exitCode } from '../compose/output/exit-codes.ts';
import { operatorName } from '../compose/output/operator-name.ts';
import { type QuietFlags, verboseOptions } from '../compose/output/verbosity.ts';
import { outletsOf } from '../compose/progress/progress-line.ts';
import { followRun } from '../app/run/follow-run.ts';
import { runNow } from '../app/run/run-command.ts';
import { hushed } from '../app/run/run-log.ts';

interface Flags extends LookFlags, QuietFlags {
  all?: true;
  exitCode?: true;
}

export function options(command: Command): void {
  verboseOptions(namingOptions(command))
    .option('--all', 'name every record, not three of each cause')
    .option('--exit-code', `exit ${exitCode('changes')} when anything differs`)
    .addHelpText(
      'after',
      '\nReads both sides as `plan` does, takes no lease, and writes nothing. It lists what differs on\n' +
        'the platform and no run mends: what people or colleagues did there, what is not of this mirror,\n' +
        'and what the configuration does not name. What the next run does is in `plan`. The API cannot\n' +
        'write names and properties, and the configuration maps none, so they are not compared.',
    );
}

/** Lists what differs on the platform and is not mended. */
export async function run(command: Command, own: Shell): Promise<number> {
  const flags = command.opts<Flags>();
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
    outlets: flags.quiet ? {} : outletsOf(shell),
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
    if (flags.json) shell.print(JSON.stringify(document, null, 2));
    else if (isRead && groups.length === 0) {
      shell.print(`Nothing differs on the platform that ${config.mirror} does not mend.`);
    } else if (isRead) {
      const causes = counted(groups.length, 'cause');
      shell.print(
        `On the platform of ${config.mirror}, ${causes} of differences that no run mends:`,
      );
      for (const line of groups.flatMap(groupLines)) shell.print(line);
    }
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

function countingChannels(mirror: Mirror, channels: Map<string, OtherChannel>): Mirror {
  const [firstLimit] = mirror.pageSizes;
  const parts = mirror.parts.map((part) => ({
    ...part,
    type: {
      ...part.type,
      async list(page: { page: number; limit: number }, signal: AbortSignal) {
        const found = await part.type.list(page, signal);
        // Later passes show the same people again.
        if (page.limit !== firstLimit) return found;
        for (const { id, name } of found.others ?? []) {
          const one = channels.get(id) ?? { id, name, count: 0 };
          channels.set(id, { ...one, count: one.count + 1 });
        }
        return found;
      },
    },
  }));
  return { ...mirror, parts };
}

function groupLines(group: DriftGroup): string[] {
  const { cause, kind, count, reason, fix, examples, details = [] } = group;
  const more = count > examples.length ? [`and ${withCommas(count - examples.length)} more`] : [];
  const named =
    details.length > 0
      ? [...details.map((one) => `${one.key}: ${one.reason}`), ...more]
      : [[examples.join(', '), ...more].join(' ')];
  return [
    '',
    `  ${withCommas(count)}  ${kind}  ${renderProblem({ reason, fix })} [${cause}]`,
    ...named.filter((line) => line !== '').map((line) => `     ${line}`),
  ];
}
