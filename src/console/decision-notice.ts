/** Words what a decision about an approval answers, for people who have no command line. */
import { tickWords } from '../worker/queues/run-schedule.ts';
import { withoutPlans } from './view/console-text.ts';
import type { CommandResult } from './view/console-mirror.ts';
import type { PageStatus } from './view/page-status.ts';
import { timeText } from './view/page.ts';

const forTheTerminal = /has the hash|crm-mirror /;

/** Returns the lines without hashes and commands, and at the end the next run after an approval. */
export function decisionNotice(
  name: string,
  { code, lines }: CommandResult,
  { due }: Pick<PageStatus, 'due'>,
): CommandResult {
  if (code !== 0) return { code, lines };
  const told = lines.filter((line) => !forTheTerminal.test(line)).map(withoutPlans);
  if (name !== 'approve') return { code, lines: told };
  const next = due.find(({ run }) => run === 'full' || run === 'fast');
  const last = next
    ? `The next scheduled run: ${tickWords(next.run)}, ${timeText(next.at)}.`
    : 'Nothing is scheduled: “Run now”, below, starts a run.';
  return { code, lines: [...told, last] };
}
