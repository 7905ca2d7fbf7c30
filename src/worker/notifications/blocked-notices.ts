import { Busy } from '../../domain/errors.ts';
import { explain } from '../../compose/output/failure-report.ts';
import type { Shell } from '../../compose/process-shell.ts';

/**
 * Prints what prevents a worker from working. A worker may stand by, or be paused, for a long time,
 * so this is printed only once.
 */
export interface Complaints {
  /** Prints the error. */
  of(error: unknown): void;
  /** Resets the state after everything works again, so that the next error is always printed. */
  no(): void;
}

/** Creates the printer for one mirror. */
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
