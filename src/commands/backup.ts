import { existsSync, statSync } from 'node:fs';
import { type Called, looking } from '../compose/command-options.ts';
import { resolve } from 'node:path';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { backUp } from '../store/database/database-backup.ts';
import { look } from '../app/snapshot-command.ts';
import { copiesOf } from '../compose/mirror-files.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant, size } from '../compose/output/format-values.ts';

export const options = { ...looking, '<file>': 'where the copy goes; nothing is overwritten' };

export const help = `
Also writes FILE-memory, a copy of the memory (do-not-contact list, audit log and request log),
and its key, FILE-memory-key. A key that the configuration keeps elsewhere is not copied. Each
copy shows one moment, also while a run is writing, and is checked before it gets its name. The
copies contain addresses: protect them as you protect the CRM.

To restore the snapshot, stop what starts runs, move the old file away with its -wal and -shm, copy
FILE to its path, and call \`check\` and \`sync\`. Leave the memory as it is, unless it is lost too:
docs/backup-and-restore.md.`;

export async function run({ flags, args: [to = ''] }: Called<typeof looking>, shell: Shell) {
  const file = resolve(to);
  return look(flags, shell, async ({ config, snapshot, now }) => {
    if (!snapshot) {
      throw new Invalid(`${config.snapshot}: there is no snapshot yet, so nothing to copy`, {
        fix: 'the first sync makes it',
      });
    }
    const { path, keyFile } = config.memory;
    const memory = `${file}-memory`;
    // A key that is kept elsewhere is meant to stay separate.
    const keyCopied = keyFile === `${path}-key`;
    const key = keyCopied ? `${memory}-key` : keyFile;
    const copies = { snapshot: file, memory, key: keyCopied ? key : undefined };
    await backUp(copiesOf({ config, snapshot }, copies, { signal: shell.stop, at: now }));
    const hasMemory = existsSync(memory);
    const made = hasMemory ? [file, memory] : [file];
    const keyLine = keyCopied
      ? `${key}: the key of the memory`
      : renderProblem({
          reason: `${key}: the key of the memory is not copied`,
          fix: 'back up the key as well',
        });
    return {
      document: {
        mirror: config.mirror,
        file,
        bytes: statSync(file).size,
        at: instant(now),
        integrity: 'ok',
        memory: hasMemory ? { file: memory, key, keyCopied } : null,
      },
      lines: [
        ...made.map((copy) => `${copy}: ${size(statSync(copy).size)}, whole and sound`),
        ...(hasMemory ? [keyLine] : []),
      ],
    };
  });
}
