/**
 * This worker's part in the moves of mirrors from disk to disk. It acts on what Redis shows of the
 * fleet (compose/placement/move-store.ts):
 *
 *   the move is    this worker is   it
 *   asked          the target       agrees, or refuses
 *   ready          the source       refuses if the keys differ
 *   leaving        the source       sends the mirror once it is released
 *   sending        the target       receives it
 *   any, but       either           ends the move: its own part has failed before
 *   failed here
 *   any, and one   any              ends the move
 *   side is dead
 *
 * What a move that was interrupted has left on the disk (move-files.ts) is finished as soon as
 * Redis says where the mirror is.
 */
import { dirname } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { Interrupted, Invalid } from '../../domain/errors.ts';
import type { Config } from '../../config/config.ts';
import { diskOf } from '../../store/database/snapshot-disk.ts';
import { explain } from '../../compose/output/failure-report.ts';
import type { Fleet } from '../../compose/placement/fleet-store.ts';
import { type Move, type MoveNews, moveStore } from '../../compose/placement/move-store.ts';
import type { Quick } from '../../compose/queues/redis-connections.ts';
import { finishMove } from './move-files.ts';
import { agree, checkKey, type MoveSide, receiveMirror, sendMirror } from './transfer-mirror.ts';

export type MirrorMoves = ReturnType<typeof createMirrorMoves>;

export function createMirrorMoves(options: {
  node: string;
  quick: Quick;
  clock: Clock;
  stop: AbortSignal;
  randomHex(bytes: number): string;
  note(line: string): void;
  /** Returns the configuration of a mirror; undefined if the folder has none. */
  configOf(mirror: string): Config | undefined;
  mirrors(): Iterable<string>;
}) {
  const { node, quick, clock, stop, randomHex, note, configOf } = options;
  /** What this worker has made up for each move of which it is the target. */
  const nonces = new Map<string, string>();
  /** What is in progress, by the id of the move. */
  const working = new Map<string, Promise<void>>();
  /** The moves whose part here has failed, and why. */
  const failed = new Map<string, MoveNews>();
  /** The mirrors that may have left something on the disk. */
  let suspects: Set<string> | undefined;
  /** Does one part of a move, unless it fails: then ends the move. */
  const work = async (
    mirror: string,
    move: Move,
    act: (side: MoveSide) => Promise<void>,
  ): Promise<void> => {
    const store = moveStore(quick, mirror, move.id);
    // A target makes it up as it agrees to a move, and uses it once again as it receives the
    // mirror. Parts of an earlier move, which somebody has kept, are sealed for another one.
    const isAsked = move.state === 'asked';
    const nonce = nonces.get(move.id) ?? (isAsked ? randomHex(16) : '');
    if (isAsked) nonces.set(move.id, nonce);
    else nonces.delete(move.id);
    try {
      const config = configOf(mirror);
      if (!config) throw new Invalid(`${node} has no file of ${mirror}`);
      await act({ config, move, store, clock, stop, randomHex, nonce, note });
    } catch (error) {
      const { reason, fix } = explain(error).problem;
      const isRefused = error instanceof Invalid && move.state !== 'sending';
      const news: MoveNews = { is: 'failed', reason, ...(fix !== undefined && { fix }), isRefused };
      if (!(error instanceof Interrupted)) note(`crm-mirror: ${mirror}: not moved: ${reason}`);
      failed.set(move.id, news);
      await store.fail(news).catch(() => undefined);
    }
  };
  return {
    /** Does what the fleet asks of this worker. Never throws. */
    act(fleet: Fleet): void {
      suspects ??= new Set(options.mirrors());
      for (const [mirror, move] of fleet.moves) {
        suspects.add(mirror);
        const failure = failed.get(move.id) ?? deathIn(fleet, mirror, move);
        if (failure) {
          void moveStore(quick, mirror, move.id)
            .fail(failure)
            .catch(() => undefined);
          continue;
        }
        const act = partOf(node, fleet, mirror, move);
        if (!act || working.has(move.id)) continue;
        const done = work(mirror, move, act).finally(() => working.delete(move.id));
        working.set(move.id, done);
      }
      for (const mirror of suspects) {
        if (fleet.moves.has(mirror) || working.size > 0) continue;
        if (isFinished(fleet, mirror, configOf(mirror), randomHex)) suspects.delete(mirror);
      }
    },
    /** Waits for what is in progress, which the worker's `stop` interrupts. */
    close: async (): Promise<void> => void (await Promise.all(working.values())),
  };
}

/** Returns why a move fails of which a side is dead. */
function deathIn(fleet: Fleet, mirror: string, { from, to }: Move): MoveNews | undefined {
  const alive = new Set(fleet.nodes.map(({ name }) => name));
  const dead = [from, to].find((name) => !alive.has(name));
  const reason = `${dead} is gone; the move of ${mirror} has ended where it was`;
  return dead === undefined ? undefined : { is: 'failed', reason, isRefused: false };
}

/** Returns what this worker has to do for a move now. */
function partOf(node: string, fleet: Fleet, mirror: string, { from, to, state }: Move) {
  if (to === node && state === 'asked') return agree;
  if (to === node && state === 'sending') return receiveMirror;
  if (from === node && state === 'ready') return checkKey;
  const home = fleet.mirrors.find(({ name }) => name === mirror)?.home;
  return from === node && state === 'leaving' && home === undefined ? sendMirror : undefined;
}

/** Finishes what an earlier move has left. What cannot be finished yet is tried again. */
function isFinished(
  fleet: Fleet,
  mirror: string,
  config: Config | undefined,
  randomHex: (bytes: number) => string,
): boolean {
  const disk = fleet.mirrors.find(({ name }) => name === mirror)?.disk;
  const here = config && diskOf(dirname(config.snapshot), randomHex);
  const isHere = disk === undefined ? undefined : disk === here;
  try {
    return !config || finishMove(config, isHere);
  } catch {
    // The disk cannot be written; the next look tries again.
    return false;
  }
}
