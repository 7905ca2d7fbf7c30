import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { backUp, copyOfText, type BackupPart } from '../store/database/database-backup.ts';
import { readDoNotContactList } from '../store/do-not-contact/list-file.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { boundDoNotContactList } from '../engine/context/do-not-contact-binding.ts';
import { auditLogOf } from '../compose/audit-trail.ts';
import { look, lookOptions, type LookFlags } from '../app/snapshot-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant, size } from '../compose/output/format-values.ts';

export function options(command: Command): void {
  lookOptions(command)
    .argument('<file>', 'where the copy goes; nothing is overwritten')
    .addHelpText(
      'after',
      '\nAlso writes FILE-ledger, a copy of the do-not-contact list, and FILE-audit, a copy of the audit\n' +
        'log, each with its key (FILE-ledger-key, FILE-audit-key). A key that the configuration keeps\n' +
        'elsewhere is not copied. Each copy shows one moment, also while a run is\n' +
        'writing, and is checked before it gets its name. To restore them: docs/backup-and-restore.md.\n' +
        'The copies contain addresses: protect them as you protect the CRM.',
    );
}

/**
 * Copies the snapshot, the do-not-contact list, the audit log and their keys. Throws Invalid if
 * there is no snapshot.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const file = resolve(command.args[0] ?? '');
  return look(command.opts<LookFlags>(), shell, async ({ config, snapshot, now }) => {
    if (!snapshot) {
      throw new Invalid(`${config.snapshot}: there is no snapshot yet, so nothing to copy`, {
        fix: 'the first sync makes it',
      });
    }
    const ledger = placesOf(`${file}-ledger`, config.ledger);
    const audit = placesOf(`${file}-audit`, config.audit);
    const files = { snapshot: file, ledger, audit };
    await backUp(copiesOf(files, { config, snapshot, now, signal: shell.stop }));
    const bytes = statSync(file).size;
    const made = [ledger, audit].filter((one) => existsSync(one.file));
    const told = (one: Places): Places | null => (made.includes(one) ? one : null);
    const lines = [file, ...made.map((one) => one.file)].map(
      (copy) => `${copy}: ${size(statSync(copy).size)}, whole and sound`,
    );
    return {
      document: {
        mirror: config.mirror,
        file,
        bytes,
        at: instant(now),
        integrity: 'ok',
        ledger: told(ledger),
        audit: told(audit),
      },
      lines: [
        ...lines,
        ...(told(ledger) ? [keyLine(ledger, 'the do-not-contact list')] : []),
        ...(told(audit) ? [keyLine(audit, 'the audit log')] : []),
      ],
    };
  });
}

/**
 * Where a copy and its key go. `keyCopied` states whether the key is copied too; if not, `key` is
 * its original location.
 */
interface Places {
  file: string;
  key: string;
  keyCopied: boolean;
}

/** A key is copied only if it is next to its file: one kept elsewhere is meant to stay separate. */
function placesOf(file: string, { path, keyFile }: { path: string; keyFile: string }): Places {
  const keyCopied = keyFile === `${path}-key`;
  return { file, key: keyCopied ? `${file}-key` : keyFile, keyCopied };
}

interface Copying {
  config: Config;
  snapshot: Snapshot;
  now: number;
  signal: AbortSignal;
}

/**
 * Copies the snapshot, then the list and the log (which may not exist yet), so that these are never
 * older than the snapshot expects. Throws Invalid if one of them or a key cannot be used.
 */
async function* copiesOf(
  files: { snapshot: string; ledger: Places; audit: Places },
  { config, snapshot, now, signal }: Copying,
): AsyncGenerator<BackupPart> {
  yield snapshot.copy(files.snapshot, { at: now, signal });
  const known = boundDoNotContactList(snapshot.meta);
  if (known) {
    const ledger = readDoNotContactList(config.ledger, known);
    try {
      yield ledger.copy(files.ledger.file, signal);
      if (files.ledger.keyCopied) yield copyOfKey(config.ledger.keyFile, files.ledger);
    } finally {
      ledger.close();
    }
  }
  const log = auditLogOf(config);
  if (!log) return;
  try {
    yield log.copy(files.audit.file, signal);
    if (files.audit.keyCopied && existsSync(config.audit.keyFile)) {
      yield copyOfKey(config.audit.keyFile, files.audit);
    }
  } finally {
    log.close();
  }
}

function copyOfKey(keyFile: string, { key }: Places): BackupPart {
  return copyOfText(readFileSync(keyFile, 'utf8'), key);
}

function keyLine({ key, keyCopied }: Places, what: string): string {
  return keyCopied
    ? `${key}: the key of ${what}`
    : renderProblem({
        reason: `${key}: the key of ${what} is not copied`,
        fix: 'back up the key as well',
      });
}
