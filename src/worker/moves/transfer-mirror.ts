/**
 * The two sides of a move. The source copies the mirror, and sends the copy through Redis; the
 * target takes it from there, proves it, and puts it in place.
 */
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  statfsSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { Interrupted, Invalid, Unavailable } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import type { Config } from '../../config/config.ts';
import { readMemoryKey } from '../../store/memory/memory-key.ts';
import { takeLease } from '../../store/database/writer-lease.ts';
import { makeFolderOf } from '../../store/database/snapshot-folder.ts';
import type { Move, MoveStore } from '../../compose/placement/move-store.ts';
import { type Seal, sealOf, type Use } from '../../compose/queues/payload-encryption.ts';
import {
  copyMirror,
  fileIn,
  filesOf,
  type Manifest,
  manifestSchema,
  type Places,
  proveCopy,
  removeCopies,
  removePlaced,
  renameMoved,
  writeMark,
} from './move-files.ts';

export interface MoveSide {
  config: Config;
  move: Move;
  store: MoveStore;
  clock: Clock;
  stop: AbortSignal;
  /** Returns random bytes as hexadecimal digits. */
  randomHex(bytes: number): string;
  /** What the target makes up for this move, and only keeps in memory; '' for the source. */
  nonce: string;
  note(line: string): void;
}

/** How long a side waits for the other one to send or take a part. */
const patienceMs = 60_000;
const lookMs = 25;

/** Returns the seal with the key of the mirror's memory. Throws Invalid. */
function sealFor({ config, randomHex }: MoveSide, node: string): Seal {
  const { mirror, memory } = config;
  const key = readMemoryKey(memory.keyFile)?.secret;
  const random = (bytes: number): Uint8Array => Buffer.from(randomHex(bytes), 'hex');
  if (key !== undefined) return sealOf({ key, mirror, random });
  throw new Invalid(`${node} has no key of the memory of ${mirror} in ${memory.keyFile}`, {
    fix: 'copy the file with the key (memoryKeyFile) there from the worker that has the mirror',
  });
}

function proofUse({ id }: Move): Use {
  return { purpose: 'move', about: `${id} proof` };
}

/**
 * Returns what a part is sealed for, so that it cannot take the place of another one, or of one of
 * an earlier move that somebody has kept.
 */
export function partUse({ id }: Move, nonce: string, part: number): Use {
  return { purpose: 'move', about: `${id} ${nonce} ${part}` };
}

/** Returns the id of the disk to which the mirror moves. */
function targetDisk({ disk }: Move): string | undefined {
  return disk.split('@')[0];
}

/** Returns undefined for the error that Redis is away, and throws every other one. */
function unlessUnavailable(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error;
}

/** How often Redis is asked whether the move is over. */
const overMs = 250;
const partBytes = 256 * 1024;

/** Has the mirror released if both workers have the same key. Throws Invalid. */
export async function checkKey(side: MoveSide): Promise<void> {
  const { config, move, store } = side;
  try {
    nonceIn(side);
  } catch (error) {
    const what = `${move.to} has another key of the memory of ${config.mirror}`;
    throw new Invalid(`${what} than ${move.from}`, {
      fix: 'copy the file with the key (memoryKeyFile) there',
      cause: error,
    });
  }
  await store.step('ready', 'leaving', move.proof);
}

/** Returns what the target has made up for this move. Throws Invalid if it has another key. */
function nonceIn(side: MoveSide): string {
  const { move } = side;
  const proof = Buffer.from(move.proof, 'base64');
  return sealFor(side, move.from).openBytes(proof, proofUse(move)).toString('utf8');
}

/**
 * Copies and sends a mirror that this worker has released, and keeps it locked until the move is
 * over. Once the mirror is on the other disk, renames the own files. Throws, and leaves everything
 * as it was, if the mirror cannot be sent.
 */
export async function sendMirror(side: MoveSide): Promise<void> {
  const { config, move, store, stop, note } = side;
  const lease = takeLease(config.snapshot);
  // From the last part on, the mirror may be on either disk.
  let isDecided = true;
  try {
    writeMark(config, { role: 'source', to: move.to, isPlaced: false });
    const manifest = await copyMirror(config, stop);
    if (!(await store.step('leaving', 'sending', move.proof))) return;
    if (await sendParts(side, manifest)) {
      isDecided = false;
      const end = await untilOver(side);
      isDecided = end !== 'unknown';
      if (end !== 'there') return;
      const kept = renameMoved(config, move.to);
      note(`crm-mirror: ${config.mirror}: it is on ${move.to} now; kept here: ${kept.join(', ')}`);
      await store.sayKept(kept).catch(() => undefined);
    }
  } finally {
    if (isDecided) removeCopies(config);
    lease.release();
  }
}

async function sendParts(side: MoveSide, manifest: Manifest): Promise<boolean> {
  const { config, move } = side;
  const seal = sealFor(side, move.from);
  const nonce = nonceIn(side);
  const total = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  let [part, sent] = [0, 0];
  for await (const bytes of partsOf(config, manifest)) {
    // The manifest does not count.
    if (part > 0) sent += bytes.length;
    const sealed = seal.closeBytes(bytes, partUse(move, nonce, part));
    if (!(await put(side, { part, sealed, sent, total }))) return false;
    part += 1;
  }
  return true;
}

async function* partsOf(config: Config, manifest: Manifest): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify(manifest));
  for (const { name } of manifest.files) {
    yield* createReadStream(fileIn(config, name).copy, { highWaterMark: partBytes });
  }
}

/** Stores a part as soon as there is room. Returns false if the move is over. */
async function put(
  { store, clock, stop, move }: MoveSide,
  { part, sealed, sent, total }: { part: number; sealed: Buffer; sent: number; total: number },
): Promise<boolean> {
  const until = clock.monotonic() + patienceMs;
  while (clock.monotonic() < until) {
    const answer = await store
      .put(part, sealed, { is: 'going', sent, total })
      .catch(unlessUnavailable);
    if (answer === 'put' || answer === 'gone') return answer === 'put';
    await clock.sleep(lookMs, stop);
  }
  throw new Unavailable(`${move.to} takes nothing any more`, { acted: 'no' });
}

async function untilOver({ store, clock, stop, move }: MoveSide) {
  const there = targetDisk(move);
  for (;;) {
    const found = await store.look().catch(unlessUnavailable);
    if (found && !found.isGoing) {
      if (found.disk === undefined) return 'unknown';
      return found.disk === there ? 'there' : 'here';
    }
    await clock.sleep(overMs, stop);
  }
}

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
    await proveCopy(config, manifest).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      const what = `the copy of ${config.mirror} that came to ${move.to} is refused: ${why}`;
      throw new Invalid(what, { fix: 'move it again', cause: error });
    });
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

async function receiveParts(side: MoveSide): Promise<Manifest> {
  const { config } = side;
  let part = 0;
  const next = async (): Promise<Buffer> => takePart(side, part++);
  const manifest = manifestSchema.parse(parseJson((await next()).toString('utf8')));
  const folder = dirname(config.snapshot);
  const { bavail, bsize } = statfsSync(folder);
  const wanted = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (bavail * bsize <= wanted) {
    throw new Invalid(`${folder} has no room for ${wanted} bytes`, { fix: 'make room' });
  }
  for (const { name, bytes } of manifest.files) {
    const opened = await open(fileIn(config, name).copy, 'wx', 0o600);
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
  return manifest;
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

/** Gives the copies their names, the snapshot last. */
function place({ config, move }: MoveSide, { files }: Manifest): void {
  refuseOthers(config, move.to);
  writeMark(config, { role: 'target', to: move.to, isPlaced: true });
  const sent = new Set(files.map(({ name }) => name));
  for (const { name, path, copy } of filesOf(config)) {
    if (!sent.has(name)) continue;
    renameSync(copy, path);
    const folder = openSync(dirname(path), 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
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
