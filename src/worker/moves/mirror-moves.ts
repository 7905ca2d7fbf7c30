/**
 * This worker's part in the moves of mirrors from disk to disk. It acts on what Redis shows of the
 * fleet (placement/move-store.ts):
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
import type { Config } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import { Interrupted, Invalid } from '../../domain/errors.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { diskOf } from '../../store/database/snapshot-disk.ts';
import type { Fleet } from '../../compose/placement/fleet-store.ts';
import { type Move, type MoveNews, moveStore } from '../../compose/placement/move-store.ts';
import type { Quick } from '../../compose/queues/redis-connections.ts';
import { finishMove } from './move-files.ts';
import { agree, checkKey, type MoveSide, receiveMirror, sendMirror } from './transfer-mirror.ts';

/** The moves of a worker in one fleet. */
export interface MirrorMoves {
  /** Does what the fleet asks of this worker. Never throws. */
  act(fleet: Fleet): void;
  /** Waits for what is in progress, which the worker's `stop` interrupts. */
  close(): Promise<void>;
}

/** What the moves need. */
interface MovesOptions {
  /** The name of this worker. */
  node: string;
  quick: Quick;
  clock: Clock;
  stop: AbortSignal;
  randomHex(bytes: number): string;
  note(line: string): void;
  /** Returns the configuration of a mirror; undefined if the folder has none. */
  configOf(mirror: string): Config | undefined;
  /** Returns the names of the mirrors in the folder. */
  mirrors(): Iterable<string>;
}

interface State extends MovesOptions {
  /** What this worker has made up for each move of which it is the target. */
  nonces: Map<string, string>;
  /** What is in progress, by the id of the move. */
  working: Map<string, Promise<void>>;
  /** The moves whose part here has failed, and why. */
  failed: Map<string, MoveNews>;
  /** The mirrors that may have left something on the disk. */
  suspects: Set<string> | undefined;
}

/** Creates the moves of this worker. */
export function createMirrorMoves(options: MovesOptions): MirrorMoves {
  const state: State = {
    ...options,
    nonces: new Map(),
    working: new Map(),
    failed: new Map(),
    suspects: undefined,
  };
  return {
    act(fleet) {
      state.suspects ??= new Set(options.mirrors());
      for (const [mirror, move] of fleet.moves) {
        state.suspects.add(mirror);
        actOn(state, fleet, mirror, move);
      }
      for (const mirror of state.suspects) finish(state, fleet, mirror);
    },
    close: async () => void (await Promise.all(state.working.values())),
  };
}

function actOn(state: State, fleet: Fleet, mirror: string, move: Move): void {
  const { node, working, failed, quick } = state;
  const alive = new Set(fleet.nodes.map(({ name }) => name));
  const dead = [move.from, move.to].find((name) => !alive.has(name));
  const reason = `${dead} is gone; the move of ${mirror} has ended where it was`;
  const died: MoveNews = { is: 'failed', reason, isRefused: false };
  const failure = failed.get(move.id) ?? (dead === undefined ? undefined : died);
  if (failure) {
    const { fail } = moveStore(quick, mirror, move.id);
    void fail(failure).catch(() => undefined);
    return;
  }
  if (working.has(move.id)) return;
  const home = fleet.mirrors.find(({ name }) => name === mirror)?.home;
  const [isTarget, isSource] = [move.to === node, move.from === node];
  const isLeft = move.state === 'leaving' && home === undefined;
  if (isTarget && move.state === 'asked') begin(state, mirror, move, agree);
  else if (isTarget && move.state === 'sending') begin(state, mirror, move, receiveMirror);
  else if (isSource && move.state === 'ready') begin(state, mirror, move, checkKey);
  else if (isSource && isLeft) begin(state, mirror, move, sendMirror);
}

/** Does one part of a move, unless it fails: then ends the move. */
function begin(
  state: State,
  mirror: string,
  move: Move,
  act: (side: MoveSide) => Promise<void>,
): void {
  const { quick, clock, stop, randomHex, note, nonces, working, failed, configOf } = state;
  const store = moveStore(quick, mirror, move.id);
  // A target makes it up as it agrees to a move, and uses it once again as it receives the mirror.
  // Parts of an earlier move, which somebody has kept, are sealed for another one.
  const isAsked = move.state === 'asked';
  const nonce = nonces.get(move.id) ?? (isAsked ? randomHex(16) : '');
  if (isAsked) nonces.set(move.id, nonce);
  else nonces.delete(move.id);
  const work = async (): Promise<void> => {
    try {
      const config = configOf(mirror);
      if (!config) throw new Invalid(`${state.node} has no file of ${mirror}`);
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
  working.set(
    move.id,
    work().finally(() => working.delete(move.id)),
  );
}

/** Finishes what an earlier move has left. What cannot be finished yet is tried again. */
function finish({ suspects, randomHex, configOf, working }: State, fleet: Fleet, mirror: string) {
  const config = configOf(mirror);
  if (fleet.moves.has(mirror) || working.size > 0) return;
  const disk = fleet.mirrors.find(({ name }) => name === mirror)?.disk;
  const here = config && diskOf(dirname(config.snapshot), randomHex);
  const isHere = disk === undefined ? undefined : disk === here;
  try {
    if (!config || finishMove(config, isHere)) suspects?.delete(mirror);
  } catch {
    // The disk cannot be written; the next look tries again.
  }
}
