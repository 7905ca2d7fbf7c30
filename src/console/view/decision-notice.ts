/** Words what a decision about an approval answers, for people who have no command line. */
import { tickWords } from '../../worker/queues/run-schedule.ts';
import type { CommandResult } from './console-mirror.ts';
import type { PageStatus } from './page-status.ts';
import { timeText } from './page.ts';

const aPlan = / under the plan [0-9a-f]+/g;
const forTheTerminal = /has the hash|crm-mirror /;

/** Returns the lines without hashes and commands, and at the end the next run after an approval. */
export function decisionNotice(
  name: string,
  { code, lines }: CommandResult,
  { due }: Pick<PageStatus, 'due'>,
): CommandResult {
  if (code !== 0) return { code, lines };
  const told = lines
    .filter((line) => !forTheTerminal.test(line))
    .map((line) => line.replaceAll(aPlan, ''));
  if (name !== 'approve') return { code, lines: told };
  const next = due.find(({ run }) => run === 'full' || run === 'fast');
  const last = next
    ? `The next scheduled run: ${tickWords(next.run)}, ${timeText(next.at)}.`
    : 'Nothing is scheduled: “Run now”, below, starts a run.';
  return { code, lines: [...told, last] };
}
