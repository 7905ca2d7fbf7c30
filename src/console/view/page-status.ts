/** Reads the status of a mirror as several pages show it. */
import type { Config } from '../../config/config.ts';
import { attentionOf, type Attention } from '../../cli/status/attention-list.ts';
import { calmOf, type Due, dueOf, readCurrentStatus } from '../../cli/status/current-status.ts';
import type { CurrentStatus } from '../../cli/status/mirror-status.ts';

/** The status, and what follows from it. It names no person by address. */
export interface PageStatus {
  status: CurrentStatus;
  attention: Attention[];
  /** Shown if nothing needs attention. */
  calm: string;
  due: Due[];
}

/** Reads the status of a mirror. `timeoutMs`: how long a lock of the snapshot is waited for. */
export function readPageStatus(config: Config, timeoutMs: number): PageStatus {
  const status = readCurrentStatus(config, timeoutMs);
  const due = dueOf({ config, now: Date.parse(status.at) });
  return { status, attention: attentionOf(status), calm: calmOf(status), due };
}
