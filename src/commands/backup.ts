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
      '\nBeside it, as FILE-ledger, goes the ledger, and as FILE-ledger-key its key; that stays where\n' +
        'it is if ledgerKeyFile names it. Each copy is of one moment, also while a run is writing, and\n' +
        'is checked before it has its name. How to restore them: docs/backup-and-restore.md.\n' +
        'They hold addresses: keep them as you keep the CRM.',
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
    ? `${key}: its key, without which the ledger is of no use`
    : renderProblem({
        reason: `${key}: the key of the ledger is not copied, and without it that is of no use`,
        fix: 'keep it, too',
      });
}
