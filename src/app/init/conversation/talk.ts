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
import { visibleLine } from '../../../compose/output/visible-text.ts';
import { cut } from '../describe-proposal.ts';
import type { Shell } from '../../../compose/process-shell.ts';

/** The person ended the conversation. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** One of several answers. */
export interface MenuItem<T extends string = string> {
  value: T;
  label: string;
  hint?: string | undefined;
}

/** The terminal of a conversation. */
export interface Talk {
  /** Returns the width of what is shown. */
  width(): number;
  /** Shows lines, cut to the width of the terminal. */
  show(lines: readonly string[]): void;
  /** Shows what went wrong. */
  warn(problem: string): void;
  /** Returns the value that is chosen. */
  choose<T extends string>(
    message: string,
    answers: readonly MenuItem<T>[],
    initial?: T,
  ): Promise<T>;
  /** Asks for a text. `fault` returns what is wrong with an answer; undefined: nothing. */
  ask(
    message: string,
    question?: {
      initial?: string;
      example?: string;
      fault?(answer: string): string | undefined;
    },
  ): Promise<string>;
  /** Asks for a yes; the answer to begin with is no. */
  agree(message: string): Promise<boolean>;
  /** Ends with a last line. */
  end(line: string, how: 'done' | 'cancelled'): void;
}

/** A list longer than this can be searched. */
const mostListed = 15;
const shownAtOnce = 12;

/** Opens a conversation. `signal` ends the question that is open. */
export function createTalk(title: string, signal: AbortSignal): Talk {
  intro(title);
  return {
    width: widthOf,
    show: (lines) => {
      const fitting = lines.map((line) => cut(visibleLine(line), widthOf()));
      log.message(fitting, { spacing: 0 });
    },
    warn: (problem) => log.warn(visibleLine(problem)),
    async choose(message, answers, initial) {
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
    async ask(message, { initial, example, fault } = {}) {
      const given = await text({
        message: visibleLine(message),
        signal,
        ...(initial !== undefined && { initialValue: initial }),
        ...(example !== undefined && { placeholder: example }),
        validate: (value) => {
          const answer = (value ?? '').trim();
          return answer === '' ? 'write something' : fault?.(answer);
        },
      });
      return answered(given).trim();
    },
    agree: async (message) =>
      answered(await confirm({ message: visibleLine(message), initialValue: false, signal })),
    end: (line, how) => (how === 'done' ? outro(line) : cancel(line)),
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

/**
 * Asks whether a command may go on. Ctrl-C is a no. `yes` and `no` are shown after the answer.
 */
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
