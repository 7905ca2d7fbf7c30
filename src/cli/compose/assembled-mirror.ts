/** A mirror that is ready to run. */
import type { Platform } from '../../platform/platform.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';

export interface Assembled {
  mirror: Mirror;
  platform: Platform;
  /** Builds the same mirror once more for a run beside this one. Close it first. */
  sibling(): Assembled;
  close(failure?: unknown): Promise<void>;
}
