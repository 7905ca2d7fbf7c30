/** Asks questions on a terminal. Every question throws Cancelled after Ctrl-C. */
import {
  autocomplete,
  cancel,
  type CANCEL_SYMBOL,
  type Option,
  confirm,
  intro,
  isCancel,
  log,
  outro,
  select,
  text,
} from '@clack/prompts';
import { visibleLine } from '../../compose/output/text-style.ts';
import { cut } from './preview.ts';
import type { Shell } from '../../compose/process-shell.ts';

/** The person ended the conversation. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

export interface MenuItem<T extends string = string> {
  value: T;
  label: string;
  hint?: string | undefined;
}

interface TextQuestion {
  initial?: string;
  example?: string;
  /** Returns what is wrong with an answer; undefined: nothing. */
  fault?: (answer: string) => string | undefined;
}

/** A list longer than this can be searched. */
const mostListed = 15;
const shownAtOnce = 12;

export type Talk = ReturnType<typeof createTalk>;

/** Opens a conversation. `signal` ends the question that is open. */
export function createTalk(title: string, signal: AbortSignal) {
  intro(title);
  return {
    width: widthOf,
    /** Lines are cut to the width of the terminal. */
    show: (lines: readonly string[]): void => {
      const fitting = lines.map((line) => cut(visibleLine(line), widthOf()));
      log.message(fitting, { spacing: 0 });
    },
    warn: (problem: string): void => log.warn(visibleLine(problem)),
    async choose<T extends string>(
      message: string,
      answers: readonly MenuItem<T>[],
      initial?: T,
    ): Promise<T> {
      const options = answers.map(({ value, label, hint }): Option<string> => ({
        value,
        label: visibleLine(label),
        ...(hint !== undefined && { hint: visibleLine(hint) }),
      }));
      const common = { message: visibleLine(message), options, maxItems: shownAtOnce, signal };
      const first = initial === undefined ? {} : { initialValue: initial };
      const ask = options.length > mostListed ? autocomplete<string> : select<string>;
      const chosen = answered(await ask({ ...common, ...first }));
      const found = answers.find(({ value }) => value === chosen);
      if (!found) throw new Cancelled();
      return found.value;
    },

    async ask(message: string, { initial, example, fault }: TextQuestion = {}): Promise<string> {
      const given = await text({
        message: visibleLine(message),
        signal,
        ...(initial !== undefined && { initialValue: initial }),
        ...(example !== undefined && { placeholder: example }),
        validate: (value) => {
          const answer = (value ?? '').trim();
          // What is shown in grey looks like an answer, and is none.
          const empty = example === undefined ? 'write something' : `write it, such as ${example}`;
          return answer === '' ? empty : fault?.(answer);
        },
      });
      return answered(given).trim();
    },
    /** Asks for a yes; the answer to begin with is no. */
    agree: async (message: string): Promise<boolean> =>
      answered(await confirm({ message: visibleLine(message), initialValue: false, signal })),
    end: (line: string, how: 'done' | 'cancelled'): void =>
      how === 'done' ? outro(line) : cancel(line),
  };
}

function answered<T extends string | boolean>(answer: T | typeof CANCEL_SYMBOL): T {
  if (isCancel(answer)) throw new Cancelled();
  return answer;
}

/** Returns the width of the terminal, less the mark before each line. */
function widthOf(): number {
  return Math.max((process.stdout.columns || 80) - 4, 20);
}

/** Asks whether a command may go on; Ctrl-C is a no. `yes` and `no` are shown after the answer. */
export async function askAgreement(
  shell: Shell,
  asked: { command: string; question: string; yes: string; no: string },
): Promise<boolean> {
  const talk = createTalk(`crm-mirror ${asked.command}`, shell.stop);
  const isAgreed = await talk.agree(asked.question).catch((error: unknown) => {
    if (error instanceof Cancelled) return false;
    throw error;
  });
  talk.end(isAgreed ? asked.yes : asked.no, isAgreed ? 'done' : 'cancelled');
  return isAgreed;
}
