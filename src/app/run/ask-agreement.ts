/** Asks on a terminal whether a command may go on. */
import { Cancelled, createTalk } from '../init/conversation/talk.ts';
import type { Shell } from '../../compose/process-shell.ts';

interface Agreement {
  command: string;
  question: string;
  /** What is shown after a yes, and after a no. */
  yes: string;
  no: string;
}

/** Returns whether the answer is yes. Ctrl-C is a no. */
export async function askAgreement(shell: Shell, asked: Agreement): Promise<boolean> {
  const talk = createTalk(`crm-mirror ${asked.command}`, shell.stop);
  const isAgreed = await talk.agree(asked.question).catch((error: unknown) => {
    if (error instanceof Cancelled) return false;
    throw error;
  });
  talk.end(isAgreed ? asked.yes : asked.no, isAgreed ? 'done' : 'cancelled');
  return isAgreed;
}
