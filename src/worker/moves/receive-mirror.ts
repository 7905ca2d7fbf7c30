/** The target's part of a move: takes the copy from Redis, proves it, and puts it in place. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, statfsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Interrupted, Invalid, Unavailable } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { makeFolderOf } from '../../store/database/snapshot-folder.ts';
import { takeLease } from '../../store/database/writer-lease.ts';
import { fileIn, type Manifest, manifestSchema, proveCopy } from './mirror-copy.ts';
import {
  type MovedFile,
  filesOf,
  type Places,
  removeCopies,
  removePlaced,
  writeMark,
} from './move-files.ts';
import {
  lookMs,
  type MoveSide,
  partUse,
  patienceMs,
  proofUse,
  sealFor,
  targetDisk,
  unlessUnavailable,
} from './move-side.ts';

/** The error for a move that is over before everything was taken. Somebody else has said why. */
class Over extends Error {}

/** Agrees to receive a mirror. Throws Invalid if this worker cannot. */
export async function agree(side: MoveSide): Promise<void> {
  const { config, move, store, nonce } = side;
  const seal = sealFor(side, move.to);
  refuseOthers(config, move.to);
  const proof = seal.closeBytes(Buffer.from(nonce), proofUse(move));
  await store.step('asked', 'ready', proof.toString('base64'));
}

function refuseOthers(places: Places, node: string): void {
  const other = filesOf(places).find(({ path }) => existsSync(path));
  if (!other) return;
  throw new Invalid(`${node} has a file at ${other.path} already`, { fix: 'move it away there' });
}

/**
 * Receives a mirror, and keeps its place locked until the move is over. Throws, and leaves nothing
 * behind, if what comes is not what the source has.
 */
export async function receiveMirror(side: MoveSide): Promise<void> {
  const { config, move, store, note } = side;
  makeFolderOf(config.snapshot);
  const lease = takeLease(config.snapshot);
  let placed: 'no' | 'maybe' | 'yes' = 'no';
  try {
    refuseOthers(config, move.to);
    removeCopies(config);
    writeMark(config, { role: 'target', to: move.to, isPlaced: false });
    const manifest = await receiveParts(side);
    await proveCopy(config, manifest).catch(sayDamaged(side));
    if (!(await store.look()).isGoing) throw new Over();
    placed = 'maybe';
    place(side, manifest);
    placed = (await arrive(side, manifest)) ? 'yes' : 'no';
    if (placed === 'no') removePlaced(config);
    else note(`crm-mirror: ${config.mirror}: it has come here from ${move.from}`);
  } catch (error) {
    if (!(error instanceof Over)) throw error;
  } finally {
    // If that is not known, the next look at Redis decides.
    if (placed !== 'maybe') removeCopies(config);
    lease.release();
  }
}

function sayDamaged({ config, move }: MoveSide) {
  return (error: unknown): never => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Invalid(`the copy of ${config.mirror} that came to ${move.to} is refused: ${why}`, {
      fix: 'move it again',
      cause: error,
    });
  };
}

/** Takes all parts, and writes them to the copies. */
async function receiveParts(side: MoveSide): Promise<Manifest> {
  const { config } = side;
  let part = 0;
  const next = async (): Promise<Buffer> => takePart(side, part++);
  const manifest = manifestSchema.parse(parseJson((await next()).toString('utf8')));
  refuseFull(config, manifest);
  for (const { name, bytes } of manifest.files) {
    await receiveFile(fileIn(config, name), { bytes, next });
  }
  return manifest;
}

async function receiveFile(
  { copy }: MovedFile,
  { bytes, next }: { bytes: number; next(): Promise<Buffer> },
): Promise<void> {
  const opened = await open(copy, 'wx', 0o600);
  try {
    for (let written = 0; written < bytes;) {
      const data = await next();
      await opened.writeFile(data);
      written += data.length;
    }
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Waits for a part, decrypts and drops it. */
async function takePart(side: MoveSide, part: number): Promise<Buffer> {
  const { config, move, store, clock, stop } = side;
  const until = clock.monotonic() + patienceMs;
  while (clock.monotonic() < until) {
    const sealed = await store.take(part).catch(unlessUnavailable);
    if (sealed) {
      const bytes = opened(side, part, sealed);
      await store.drop(part).catch(unlessUnavailable);
      return bytes;
    }
    const found = await store.look().catch(unlessUnavailable);
    if (found && !found.isGoing) throw new Over();
    await clock.sleep(lookMs, stop);
  }
  throw new Unavailable(`${move.from} sends nothing of ${config.mirror} any more`, { acted: 'no' });
}

function opened(side: MoveSide, part: number, sealed: Buffer): Buffer {
  const { config, move, nonce } = side;
  try {
    return sealFor(side, move.to).openBytes(sealed, partUse(move, nonce, part));
  } catch (error) {
    throw new Invalid(`part ${part} of ${config.mirror} was damaged on its way to ${move.to}`, {
      fix: 'move it again',
      cause: error,
    });
  }
}

function refuseFull({ snapshot }: Places, { files }: Manifest): void {
  const { bavail, bsize } = statfsSync(dirname(snapshot));
  const wanted = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (bavail * bsize > wanted) return;
  throw new Invalid(`${dirname(snapshot)} has no room for ${wanted} bytes`, { fix: 'make room' });
}

/** Gives the copies their names, the snapshot last. */
function place({ config, move }: MoveSide, { files }: Manifest): void {
  refuseOthers(config, move.to);
  writeMark(config, { role: 'target', to: move.to, isPlaced: true });
  const sent = new Set(files.map(({ name }) => name));
  for (const { name, path, copy } of filesOf(config)) {
    if (!sent.has(name)) continue;
    renameSync(copy, path);
    syncFolder(dirname(path));
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Makes this disk the one of the mirror. Returns false if the move was over before that. */
async function arrive(side: MoveSide, { people, entries, files }: Manifest): Promise<boolean> {
  const { store, clock, stop, move } = side;
  const here = targetDisk(move);
  for (;;) {
    const isMoved = await store
      .arrive({ is: 'moved', people, entries, files })
      .catch(unlessUnavailable);
    if (isMoved) return true;
    const found = await store.look().catch(unlessUnavailable);
    // The answer to an attempt may have been lost.
    if (found?.disk === here) return true;
    if (found?.disk !== undefined && !found.isGoing) return false;
    if (found && !found.isGoing) throw new Interrupted('SIGTERM');
    await clock.sleep(lookMs, stop);
  }
}
