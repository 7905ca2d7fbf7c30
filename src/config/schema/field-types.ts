import { z } from 'zod';
import { fault, isHeaderText, number, says, text, told } from '../../domain/schema-fields.ts';
import { isRecord } from '../../domain/values/record-field.ts';
import type { Fault } from '../../domain/record.ts';
import { delayForm, durationForm } from '../../domain/values/config-value.ts';

export const percent = (what: string) => number(0, 100, what);

export const secret = (what: string) =>
  z
    .string()
    .refine(
      isHeaderText,
      says('is empty or holds what a header cannot carry', 'write the key alone'),
    )
    .describe(what);

/** Makes a check across fields run even if one is invalid, to report all mistakes together. */
export const onMapping = {
  when: ({ value }: { value: unknown }) => isRecord(value),
};

/** The reason why a text is not a valid condition, and the position of the character concerned. */
export interface Flaw extends Fault {
  at: number;
}

const isFlaw = (found: object): found is Flaw => 'reason' in found;

/** Returns the schema of a text that `read` reads, or whose flaw it names with its place. */
export const readText = <T extends object>(what: string, read: (given: string) => T | Flaw) =>
  text(what).transform((given, context) => {
    const found = read(given);
    if (!isFlaw(found)) return found;
    const { reason, fix, at } = found;
    context.addIssue({ code: 'custom', message: reason, params: { fix, at } });
    return z.NEVER;
  });

/** An email address, and the mistake of what is none. */
export const mailbox = /^[^\s<>@,;"]+@[^\s<>@,;"]+$/;
export const noAddress = says('is no email address', 'write name@example.com');

const noTime = fault('must be greater than 0', 'write 1s or more');
const noDuration = fault('is not a duration', 'write a number and s, m, h or d: 90d');

export const duration = (what: string) =>
  z
    .string()
    .regex(durationForm, {
      error: (issue) => {
        const isNone = /^0+[smhd]$/.test(String(issue.input));
        return told(isNone ? noTime : noDuration)(issue);
      },
    })
    .describe(what);

export const delay = (what: string) =>
  z
    .string()
    .regex(delayForm, says('is not a duration', 'write a number and s, m, h or d: 90d, or 0s'))
    .describe(what);
