/** Defines the types of fields that hold a duration. */
import { z } from 'zod';
import { fault, says, told } from '../../domain/schema-fault.ts';
import { delayForm, durationForm } from '../../domain/values/config-value.ts';

const noTime = fault('must be greater than 0', 'write 1s or more');
const noDuration = fault('is not a duration', 'write a number and s, m, h or d: 90d');

/** Returns the schema of a duration above 0. */
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

/** Returns the schema of a duration that may be 0s. */
export const delay = (what: string) =>
  z
    .string()
    .regex(delayForm, says('is not a duration', 'write a number and s, m, h or d: 90d, or 0s'))
    .describe(what);
