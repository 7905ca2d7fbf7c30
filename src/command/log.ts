import { pino } from 'pino';
import type { Summary } from '../plan/summary.ts';
import type { Shell } from './shell.ts';

/** What goes to stderr for machines: JSON lines without an address or a secret. */
export interface Log {
  ended(summary: Summary, what: 'run' | 'plan' | 'event'): void;
}

/** On a terminal the tables say it all, and the log keeps to what went wrong. */
export function createLog(shell: Shell, mirror: string): Log {
  const level = shell.interactive ? 'silent' : 'info';
  const log = pino({ base: { mirror }, level }, { write: (line) => shell.note(line.trimEnd()) });
  return {
    ended({ problems, mirror: _, ...summary }, what) {
      const at = summary.status === 'failed' ? 'error' : 'info';
      log[at]({ ...summary, problems: problems.length }, `${what} ${summary.status}`);
    },
  };
}
