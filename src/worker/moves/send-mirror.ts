/** The source's part of a move: copies the mirror, and sends the copy through Redis. */
import { createReadStream } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { takeLease } from '../../store/database/writer-lease.ts';
import { copyMirror, fileIn, type Manifest } from './mirror-copy.ts';
import { removeCopies, renameMoved, writeMark } from './move-files.ts';
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

/** How often Redis is asked whether the move is over. */
const overMs = 250;
/** The size of a part. */
const partBytes = 256 * 1024;

/** Has the mirror released if both workers have the same key. Throws Invalid. */
export async function checkKey(side: MoveSide): Promise<void> {
  const { config, move, store } = side;
  try {
    nonceIn(side);
  } catch (error) {
    const what = `${move.to} has another key of the do-not-contact list of ${config.mirror}`;
    throw new Invalid(`${what} than ${move.from}`, {
      fix: 'copy the file with the key (ledgerKeyFile) there',
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

/** Sends the manifest, and then the files. Returns false if the move is over before. */
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

/** Yields the manifest, and the copies in pieces. */
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

/** Waits until the move is over. */
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
