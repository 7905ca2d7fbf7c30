import { Invalid } from '../../domain/errors.ts';

const reasonAtMost = 200;

/**
 * Returns the text of an option as one line of at most 200 characters. Throws Invalid if it holds
 * an address, because the text is stored and logged.
 */
export function reasonOf(text: string | undefined, option = '--reason'): string | undefined {
  const reason = text?.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim();
  if (reason === undefined) return undefined;
  if (/\S@\S/.test(reason)) {
    throw new Invalid(`${option}: an address is in it, and it goes into logs`, {
      fix: 'leave it out',
    });
  }
  if (reason.length <= reasonAtMost) return reason;
  throw new Invalid(`${option}: ${reason.length} characters`, { fix: `at most ${reasonAtMost}` });
}

/** Returns the text like `reasonOf`; `fix` is the remedy if it is missing or empty. */
export function requiredText(option: string, text: string | undefined, fix: string): string {
  const filled = reasonOf(text, option);
  if (filled) return filled;
  throw new Invalid(`${option}: it is empty`, { fix });
}
