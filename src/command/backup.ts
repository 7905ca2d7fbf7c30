import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { Invalid } from '../model/errors.ts';
import { look, lookOptions, type LookFlags } from './look.ts';
import type { Shell } from './shell.ts';
import { instant, size } from './words.ts';

export function options(command: Command): void {
  lookOptions(command)
    .argument('<file>', 'where the copy goes; nothing is overwritten')
    .addHelpText(
      'after',
      '\nThe copy is of one moment, also while a run is writing, and is checked before it has its\n' +
        'name. To restore it, put it where the configuration has the snapshot (README, backups).\n' +
        'It holds addresses: keep it as you keep the CRM.',
    );
}

export async function run(command: Command, shell: Shell): Promise<number> {
  const file = resolve(command.args[0] ?? '');
  return look(command.opts<LookFlags>(), shell, async ({ config, snapshot, now }) => {
    if (!snapshot) {
      throw new Invalid(
        `${config.snapshot}: there is no snapshot yet, so nothing to copy → the first sync makes it`,
      );
    }
    await snapshot.backUp(file, { at: now, signal: shell.stop });
    const { size: bytes } = statSync(file);
    const document = { mirror: config.mirror, file, bytes, at: instant(now), integrity: 'ok' };
    return { document, lines: [`${file}: ${size(bytes)}, whole and sound`] };
  });
}
