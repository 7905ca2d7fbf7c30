/** Opens a mirror for reading, also while another process writes. */
import type { Config } from '../../config/config.ts';
import { isLeased } from '../../store/database/writer-lease.ts';
import { lookInto } from '../../store/open-snapshot.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { namesOf, type Names } from './person-names.ts';

export interface OpenedMirror {
  config: Config;
  snapshot: Snapshot | undefined;
  names: Names;
}

export interface Seen extends OpenedMirror {
  /** Whether another process has the lease of the mirror. */
  leased: boolean;
  now: number;
}

/** The caller closes the snapshot. `timeoutMs`: how long a lock is waited for. */
export function see(config: Config, addresses: boolean, timeoutMs?: number): Seen {
  const snapshot = lookInto(config.snapshot, { timeoutMs });
  const names = namesIn(snapshot, addresses);
  return { config, snapshot, names, leased: isLeased(config.snapshot), now: Date.now() };
}

/** Returns the names of people in a snapshot; their keys if there is none. */
export function namesIn(snapshot: Snapshot | undefined, addresses: boolean): Names {
  return snapshot ? namesOf(snapshot, addresses) : ({ key }) => key;
}
