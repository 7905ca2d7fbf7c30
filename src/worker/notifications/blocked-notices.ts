import { Busy } from '../../domain/errors.ts';
import { explain } from '../../cli/output/failure-report.ts';
import type { Shell } from '../../cli/compose/process-shell.ts';

/**
 * Prints what keeps a worker from its work. A worker may stand by, or be paused, for a long time:
 * that is printed once.
 */
export interface Complaints {
  /** Prints the error. */
  of(error: unknown): void;
  /** All is well again: the next error is printed in any case. */
  no(): void;
}

/** Creates the complaints about one mirror. */
export function complaintsOf(mirror: string, { note }: Pick<Shell, 'note'>): Complaints {
  let said = '';
  return {
    of(error) {
      const { text } = explain(error);
      if (error instanceof Busy && said === text) return;
      said = text;
      for (const line of text.split('\n')) note(`crm-mirror: ${mirror}: ${line}`);
    },
    no: () => void (said = ''),
  };
}
