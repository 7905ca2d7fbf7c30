/** What the two sides of a move have in common. */
import type { Config } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { readKey } from '../../store/do-not-contact/list-key.ts';
import type { Move, MoveStore } from '../../compose/placement/move-store.ts';
import { type Seal, sealOf, type Use } from '../../compose/queues/payload-encryption.ts';

/** One side of a move. */
export interface MoveSide {
  config: Config;
  move: Move;
  store: MoveStore;
  clock: Clock;
  /** Aborted when the worker is asked to stop. */
  stop: AbortSignal;
  /** Returns random bytes as hexadecimal digits. */
  randomHex(bytes: number): string;
  /** What the target makes up for this move, and only keeps in memory; '' for the source. */
  nonce: string;
  note(line: string): void;
}

/** How long a side waits for the other one to send or take a part. */
export const patienceMs = 60_000;
/** How often it looks. */
export const lookMs = 25;

/** Returns the seal with the key of the mirror's do-not-contact list. Throws Invalid. */
export function sealFor({ config, randomHex }: MoveSide, node: string): Seal {
  const { mirror, ledger } = config;
  const key = readKey(ledger.keyFile);
  const random = (bytes: number): Uint8Array => Buffer.from(randomHex(bytes), 'hex');
  if (key !== undefined) return sealOf({ key, mirror, random });
  throw new Invalid(
    `${node} has no key of the do-not-contact list of ${mirror} in ${ledger.keyFile}`,
    { fix: 'copy the file with the key (ledgerKeyFile) there from the worker that has the mirror' },
  );
}

/** Returns what the target's proof is sealed for. */
export function proofUse({ id }: Move): Use {
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
export function targetDisk({ disk }: Move): string | undefined {
  return disk.split('@')[0];
}

/** Returns undefined for the error that Redis is away, and throws every other one. */
export function unlessUnavailable(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error;
}
