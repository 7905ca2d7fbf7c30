import type { Command } from 'commander';
import { table } from '../compose/output/table.ts';
import { cell } from '../compose/output/visible-text.ts';
import { reach, type ReachFlags } from '../app/platform-command.ts';
import { lookOptions } from '../app/snapshot-command.ts';
import type { CommandPart, Shell } from '../compose/process-shell.ts';

export const parts: readonly CommandPart[] = [
  {
    name: 'enable',
    summary: 'switch an API key on; one that is on stays on',
    options: (command) => {
      lookOptions(command)
        .argument('<id>', 'the id of the key, not the key')
        .addHelpText(
          'after',
          '\nA disabled key cannot enable itself: configure another one for this.',
        );
    },
    run,
  },
];

async function run(command: Command, shell: Shell): Promise<number> {
  const [id = ''] = command.args;
  return reach(command.opts<ReachFlags>(), shell, async ({ platform, signal }) => {
    const key = await platform.apiKeys.enable(id, { signal });
    const { name, start, enabled, permissions, requestCount } = key;
    const lines = table([
      ['KEY', 'BEGINS WITH', 'ENABLED', 'PERMISSIONS', 'REQUESTS', 'ID'],
      [name, start, enabled, permissions, requestCount, key.id].map(cell),
    ]);
    return { document: key, lines, failed: !enabled };
  });
}
