import { type Called, naming, verbose } from '../compose/command-options.ts';
import { renderProblem } from '../domain/errors.ts';
import { attentionOf } from '../views/status/attention.ts';
import { askRedis } from '../views/status/next-runs.ts';
import { currentStatusOf } from '../views/status/status-document.ts';
import { look } from '../app/snapshot-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { attentionSection, statusSection } from '../views/status/status-sections.ts';

export const options = {
  ...naming,
  ...verbose,
  'mirrors <folder>': 'one line for each mirror of a folder of configurations, worst first',
};

export const help = `
Shows what awaits approval and under which plan, and what waits for a window or canary and until
when. Reads the snapshot only and changes nothing, so it works during a run. The exit code is 0
whatever the state; with --json, \`ok\` is false and \`attention\` says why if something needs
attention. With --mirrors, it is 1 if a file cannot be used.`;

export async function run({ flags, namesConfig: isNamed }: Called<typeof options>, shell: Shell) {
  const { verbose: isVerbose = false, mirrors } = flags;
  if (mirrors !== undefined) {
    // The module is loaded for folders only, because Redis comes with it.
    const { showFolder } = await import('./fleet.ts');
    return showFolder(mirrors, { ...flags, isNamed }, shell);
  }
  return look(flags, shell, async (seen) => {
    const standing = currentStatusOf(seen);
    const next = await askRedis(seen.config, standing.worker);
    const attention = attentionOf(standing, next.faults);
    const { memory, returns } = standing;
    const { stuck = null } = returns ?? {};
    // The document has each problem as one line of text.
    const { mirror, at, ...rest } = {
      ...standing,
      returns: returns && {
        ...returns,
        stuck: stuck && { since: stuck.since, reason: renderProblem(stuck) },
      },
      memory: { ...memory, fault: memory.fault && renderProblem(memory.fault) },
    };
    return {
      document: { mirror, at, ok: attention.length === 0, attention, ...rest, due: next.due },
      sections: [attentionSection(standing, attention), statusSection(standing, next, isVerbose)],
    };
  });
}
