/** Words what a decision about an approval answers, for people who have no command line. */
import { tickWords } from '../compose/queues/run-schedule.ts';
import type { CommandResult } from './view/console-mirror.ts';
import { withoutPlans } from './view/console-text.ts';
import type { PageStatus, PageStatusAndNext } from './view/page-status.ts';
import { timeText } from './view/page.ts';

/** The actions that decide about what awaits approval. */
const decisions: ReadonlySet<string> = new Set(['approve', 'reject']);
const forTheTerminal = /has the hash|crm-mirror |runs this command/;
const aboutProcess = /^A process holds the mirror/;

/**
 * Returns the lines that an action answers. Those of a decision name no hashes and commands, and
 * end with the next run after an approval. `read` reads the schedule.
 */
export async function answerLines(
  name: string,
  { code, lines }: Pick<CommandResult, 'code' | 'lines'>,
  read: () => Promise<Pick<PageStatusAndNext, 'next' | 'status'>>,
): Promise<string[]> {
  if (code === 0 && name === 'pause') return pausedLines(lines, (await read()).status);
  if (code !== 0 || !decisions.has(name)) return lines;
  const told = lines.filter((line) => !forTheTerminal.test(line)).map(withoutPlans);
  if (name !== 'approve') return told;
  const { due } = (await read()).next;
  const next = due.find(({ run }) => run === 'full' || run === 'fast');
  const last = next
    ? `The next scheduled run: ${tickWords(next.run)}, ${timeText(next.at)}.`
    : 'Nothing is scheduled: “Run now”, below, starts a run.';
  return [...told, last];
}

/** A worker always holds its mirrors, which says nothing about a run. */
function pausedLines(
  lines: readonly string[],
  { running }: Pick<PageStatus['status'], 'running'>,
): string[] {
  const told = lines.filter((line) => !aboutProcess.test(line));
  return running
    ? [...told, 'The run in progress goes on to its end; no further one begins.']
    : told;
}
