/** Copies the files of a mirror, and proves that a copy is whole. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import { readDoNotContactList } from '../../store/do-not-contact/list-file.ts';
import { boundDoNotContactList } from '../../engine/context/do-not-contact-binding.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import { backUp, type BackupPart, copyOfText } from '../../store/database/database-backup.ts';
import { checkFile } from '../../store/database/file-check.ts';
import { lookInto, type Snapshot } from '../../store/snapshot.ts';
import { filesOf, type MovedFile, type Places } from './move-files.ts';

/** What a copy has to be. */
export const manifestSchema = z.object({
  people: z.number(),
  entries: z.number(),
  files: z.array(
    z.object({
      name: z.enum(['snapshot', 'ledger', 'audit', 'audit-key']),
      bytes: z.number(),
      sha256: z.string(),
    }),
  ),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Copies the files, and returns what the original is. The caller holds the lease. */
export async function copyMirror(config: Config, signal: AbortSignal): Promise<Manifest> {
  const snapshot = lookInto(config.snapshot);
  if (!snapshot) throw new Invalid(`${config.snapshot}: there is no snapshot to move`);
  try {
    const counts = countsIn(snapshot, config.ledger);
    await backUp(copiesOf(config, snapshot, signal));
    return { ...counts, files: await describe(config) };
  } finally {
    snapshot.close();
  }
}

async function* copiesOf(
  config: Config,
  snapshot: Snapshot,
  signal: AbortSignal,
): AsyncGenerator<BackupPart> {
  yield snapshot.copy(fileIn(config, 'snapshot').copy, { signal });
  if (existsSync(config.ledger.path)) {
    const list = readDoNotContactList(config.ledger, boundDoNotContactList(snapshot.meta));
    try {
      yield list.copy(fileIn(config, 'ledger').copy, signal);
    } finally {
      list.close();
    }
  }
  const log = auditLogOf(config);
  if (!log) return;
  try {
    yield log.copy(fileIn(config, 'audit').copy, signal);
  } finally {
    log.close();
  }
  const key = filesOf(config).find(({ name }) => name === 'audit-key');
  if (key && existsSync(key.path)) yield copyOfText(readFileSync(key.path, 'utf8'), key.copy);
}

/** Returns a file that moves. Throws Invalid if this configuration has it somewhere else. */
export function fileIn(places: Places, wanted: MovedFile['name']): MovedFile {
  const found = filesOf(places).find(({ name }) => name === wanted);
  if (found) return found;
  // Only the key of the audit log may be elsewhere.
  throw new Invalid('the key of the audit log has no place here', {
    fix: 'let both configurations name the same audit.keyFile',
  });
}

async function describe(places: Places): Promise<Manifest['files']> {
  const files: Manifest['files'] = [];
  for (const { name, copy } of filesOf(places)) {
    if (!existsSync(copy)) continue;
    files.push({ name, bytes: statSync(copy).size, sha256: await hashOf(copy) });
  }
  return files;
}

/**
 * Compares copies with what the original is: their bytes, their structure, and how many people and
 * entries they have. Throws Invalid.
 */
export async function proveCopy(config: Config, wanted: Manifest): Promise<void> {
  for (const { name, sha256 } of wanted.files) {
    const { copy } = fileIn(config, name);
    if ((await hashOf(copy)) !== sha256) throw new Invalid(`the copy of the ${name} is damaged`);
    if (name !== 'audit-key') await checkFile(copy);
  }
  const snapshot = lookInto(fileIn(config, 'snapshot').copy);
  if (!snapshot) throw new Invalid('the copy of the snapshot is empty');
  try {
    const place = { path: fileIn(config, 'ledger').copy, keyFile: config.ledger.keyFile };
    const { people, entries } = countsIn(snapshot, place);
    if (people === wanted.people && entries === wanted.entries) return;
    throw new Invalid(
      `the copy has ${people} people and ${entries} entries instead of ${wanted.people} and ${wanted.entries}`,
    );
  } finally {
    snapshot.close();
  }
}

function countsIn(snapshot: Snapshot, place: Config['ledger']) {
  const list = readDoNotContactList(place, boundDoNotContactList(snapshot.meta));
  try {
    return { people: snapshot.recorded.count('contact'), entries: list.size() };
  } finally {
    list.close();
  }
}

/** Returns the SHA-256 of a file in hexadecimal. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
