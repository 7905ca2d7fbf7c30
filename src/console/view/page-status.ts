/** Reads the status of a mirror as several pages show it. */
import type { Config } from '../../config/config.ts';
import { see } from '../../cli/lookup/snapshot-command.ts';
import { attentionOf, type Attention } from '../../cli/status/attention-list.ts';
import { calmOf, type Due, dueOf } from '../../cli/status/current-status.ts';
import { type CurrentStatus, currentStatusOf } from '../../cli/status/mirror-status.ts';

/** The status, and what follows from it. It names no person by address. */
export interface PageStatus {
  status: CurrentStatus;
  attention: Attention[];
  /** Shown if nothing needs attention. */
  calm: string;
  due: Due[];
}

/** Reads the status of a mirror. */
export function readPageStatus(config: Config): PageStatus {
  const seen = see(config, false);
  try {
    const status = currentStatusOf(seen);
    return { status, attention: attentionOf(status), calm: calmOf(status), due: dueOf(seen) };
  } finally {
    seen.snapshot?.close();
  }
}
