/** Reads the status of a mirror as several pages show it. */
import { attentionOf, type Attention } from '../../cli/status/attention-list.ts';
import { calmOf, type Due, dueOf } from '../../cli/status/current-status.ts';
import { type CurrentStatus, currentStatusOf } from '../../cli/status/mirror-status.ts';
import type { ConsoleMirror } from './console-mirror.ts';

/** The status, and what follows from it. It names no person by address. */
export interface PageStatus {
  status: CurrentStatus;
  attention: Attention[];
  /** Shown if nothing needs attention. */
  calm: string;
  due: Due[];
}

/** Reads the status of a mirror. */
export async function readPageStatus(mirror: ConsoleMirror): Promise<PageStatus> {
  return mirror.read({ seesAddresses: false }, (seen) => {
    const status = currentStatusOf(seen);
    return { status, attention: attentionOf(status), calm: calmOf(status), due: dueOf(seen) };
  });
}
