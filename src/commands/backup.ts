import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { backUp, copyOfText, type BackupPart } from '../snapshot/database/database-backup.ts';
import { readDoNotContactList } from '../do-not-contact/list-file.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { boundDoNotContactList } from '../engine/context/do-not-contact-binding.ts';
import { look, lookOptions, type LookFlags } from '../cli/lookup/snapshot-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant, size } from '../cli/output/format-values.ts';

/** Declares the flags of `backup`. */
export function options(command: Command): void {
  lookOptions(command)
    .argument('<file>', 'where the copy goes; nothing is overwritten')
    .addHelpText(
      'after',
      '\nAlso writes FILE-ledger, a copy of the do-not-contact list, and FILE-ledger-key, its key. A key\n' +
        'that ledgerKeyFile names is not copied. Each copy shows one moment, also while a run is\n' +
        'writing, and is checked before it gets its name. To restore them: docs/backup-and-restore.md.\n' +
        'The copies contain addresses: protect them as you protect the CRM.',
    );
}

/**
 * Copies the snapshot, the do-not-contact list and its key. Throws Invalid if there is no snapshot.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const file = resolve(command.args[0] ?? '');
  return look(command.opts<LookFlags>(), shell, async ({ config, snapshot, now }) => {
    if (!snapshot) {
      throw new Invalid(`${config.snapshot}: there is no snapshot yet, so nothing to copy`, {
        fix: 'the first sync makes it',
      });
    }
    const { path, keyFile } = config.ledger;
    const keyCopied = keyFile === `${path}-key`;
    const key = keyCopied ? `${file}-ledger-key` : keyFile;
    const files = { snapshot: file, ledger: `${file}-ledger`, key, keyCopied };
    await backUp(copiesOf(files, { config, snapshot, now, signal: shell.stop }));
    const bytes = statSync(file).size;
    const hasLedger = existsSync(files.ledger);
    const ledger = hasLedger ? { file: files.ledger, key, keyCopied } : null;
    const copies = hasLedger ? [file, files.ledger] : [file];
    const lines = copies.map((copy) => `${copy}: ${size(statSync(copy).size)}, whole and sound`);
    return {
      document: { mirror: config.mirror, file, bytes, at: instant(now), integrity: 'ok', ledger },
      lines: hasLedger ? [...lines, keyLine(files)] : lines,
    };
  });
}

/**
 * The paths of the copies. `keyCopied` states whether the key is copied too; if not, `key` is its
 * original location.
 */
interface Files {
  snapshot: string;
  ledger: string;
  key: string;
  keyCopied: boolean;
}

interface Copying {
  config: Config;
  snapshot: Snapshot;
  now: number;
  signal: AbortSignal;
}

/**
 * Copies the snapshot, then the list (which may not exist yet), so that the list is never older
 * than the snapshot expects. The key is copied only if it is next to its list, because a key kept
 * elsewhere is meant to stay separate. Throws Invalid if the list or its key cannot be used.
 */
async function* copiesOf(
  files: Files,
  { config, snapshot, now, signal }: Copying,
): AsyncGenerator<BackupPart> {
  yield snapshot.copy(files.snapshot, { at: now, signal });
  const known = boundDoNotContactList(snapshot.meta);
  if (!known) return;
  const ledger = readDoNotContactList(config.ledger, known);
  try {
    yield ledger.copy(files.ledger, signal);
    if (files.keyCopied) yield copyOfText(readFileSync(config.ledger.keyFile, 'utf8'), files.key);
  } finally {
    ledger.close();
  }
}

function keyLine({ key, keyCopied }: Files): string {
  return keyCopied
    ? `${key}: its key, without which the do-not-contact list cannot be used`
    : renderProblem({
        reason: `${key}: the key is not copied, and without it the do-not-contact list cannot be used`,
        fix: 'back up the key as well',
      });
}
