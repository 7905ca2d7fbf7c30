import type { Command } from 'commander';
import { renderProblem } from '../domain/errors.ts';
import { changeName } from '../compose/output/change-words.ts';
import { table } from '../compose/output/table.ts';
import { verboseOption } from '../compose/output/verbosity.ts';
import type { Attention } from '../views/status/attention.ts';
import { attentionOf } from '../views/status/attention-list.ts';
import { look, type LookFlags, namingOptions } from '../app/snapshot-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type CurrentStatus, currentStatusOf } from '../views/status/status-document.ts';
import { counted } from '../domain/values/counted.ts';
import { askRedis } from '../views/status/mirror-health.ts';
import { calmOf, rowsOf } from '../views/status/status-text.ts';

export function options(command: Command): void {
  verboseOption(namingOptions(command)).addHelpText(
    'after',
    '\nReads the snapshot only and changes nothing, so it works during a run. The exit code is 0\n' +
      'whatever the state; with --json, `ok` is false and `attention` says why if something needs\n' +
      'attention.',
  );
}

/** Prints the status of the mirror: first what needs attention, then everything else. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<LookFlags & { verbose?: true }>();
  const { verbose: isVerbose = false } = flags;
  return look(flags, shell, async (seen) => {
    const standing = currentStatusOf(seen);
    const next = await askRedis(seen.config, standing);
    const attention = attentionOf(standing, next.faults);
    const { ledger, returns } = standing;
    const { stuck = null } = returns ?? {};
    // The document has each problem as one line of text.
    const { mirror, at, ...rest } = {
      ...standing,
      returns: returns && {
        ...returns,
        stuck: stuck && { since: stuck.since, reason: renderProblem(stuck) },
      },
      ledger: { ...ledger, fault: ledger.fault && renderProblem(ledger.fault) },
    };
    return {
      document: { mirror, at, ok: attention.length === 0, attention, ...rest, due: next.due },
      lines: [...headOf(standing, attention), '', ...table(rowsOf(standing, next, isVerbose))],
    };
  });
}

function headOf(standing: CurrentStatus, attention: readonly Attention[]): string[] {
  if (attention.length === 0) return [`${standing.mirror}: ${calmOf(standing)}`];
  const { optOutsUnreadable, optOutsRefused, returns, held } = standing;
  return [
    `${standing.mirror} NEEDS ATTENTION`,
    ...attention.flatMap(({ code, text, fix }) => [
      `  ${renderProblem({ reason: text, fix })}`,
      ...(code === 'opt_outs_unreadable' ? listPeople(optOutsUnreadable) : []),
      ...(code === 'opt_outs_refused' ? listPeople(optOutsRefused) : []),
      ...(code === 'returns_rejected' && returns ? listPeople(returns.rejected) : []),
      ...(code === 'held' ? held.flatMap(listChanges) : []),
    ]),
  ];
}

interface Listed {
  key: string;
  channel?: string;
  reason: string;
  fix: string;
  since: string;
  attempts?: number;
  retryAt?: string | null;
}

function listPeople({ count, people }: { count: number; people: readonly Listed[] }): string[] {
  const lines = people.map(({ key, channel, reason, fix, since, attempts, retryAt }) => {
    const where = channel === undefined ? '' : ` in ${channel}`;
    const again = `tried ${attempts} ${attempts === 1 ? 'time' : 'times'}, again from ${retryAt}`;
    const next = attempts === 0 ? 'the next run tries it' : again;
    const tries = attempts === undefined ? '' : ` (${next})`;
    return `    ${key}${where} since ${since}: ${renderProblem({ reason, fix })}${tries}`;
  });
  const more = count - people.length;
  return more > 0 ? [...lines, `    … and ${more} more`] : lines;
}

function listChanges({ plan, changes, more }: CurrentStatus['held'][number]): string[] {
  const lines = changes.map(
    ({ key, op, part }) =>
      `    ${plan}: ${changeName(op, false)} ${key}${part === '' ? '' : ` in ${part}`}`,
  );
  return more > 0 ? [...lines, `    … and ${counted(more, 'more change')}`] : lines;
}
