import { Busy } from '../../domain/errors.ts';
import { explain } from '../../cli/output/failure-report.ts';
import type { Shell } from '../../cli/compose/process-shell.ts';

/** What a worker says of what is in the way. Who stands by, or is paused, is so for long: once. */
export interface Complaints {
  of(error: unknown): void;
  /** All is well again. */
  no(): void;
}

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
