/** Reads the status of a mirror as several pages show it. */
import type { Config } from '../../config/config.ts';
import { type Attention, worstFirst } from '../../views/status/attention.ts';
import { attentionOf } from '../../views/status/attention-list.ts';
import { type NextRuns, outageLines, unreadable } from '../../views/status/mirror-health.ts';
import { readCurrentStatus, statusWithoutSnapshot } from '../../views/status/current-status.ts';
import type { CurrentStatus } from '../../views/status/mirror-status.ts';

/** The status, and what follows from it. It names no person by address. */
export interface PageStatus {
  status: CurrentStatus;
  attention: Attention[];
}

/** The same with the next runs. */
export type PageStatusAndNext = PageStatus & { next: NextRuns };

/**
 * Reads the status of a mirror. A snapshot that cannot be read is what needs attention.
 * `timeoutMs`: how long a lock of the snapshot is waited for.
 */
export function readPageStatus(config: Config, timeoutMs?: number): PageStatus {
  const { status, fault } = readOrFault(config, timeoutMs);
  const { outages, at } = status;
  const attention = fault ? worstFirst([fault, ...outageLines(outages, at)]) : attentionOf(status);
  return { status, attention };
}

function readOrFault(
  config: Config,
  timeoutMs: number | undefined,
): { status: CurrentStatus; fault?: Attention } {
  try {
    return { status: readCurrentStatus(config, timeoutMs) };
  } catch (error) {
    const fault = unreadable(error);
    if (!fault) throw error;
    return { status: statusWithoutSnapshot(config), fault };
  }
}
