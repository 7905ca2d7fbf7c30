/** Tells what a verification of the audit log found. */
import type { Verification } from '../../audit/verify-log.ts';
import { renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { type Line, lineOf, styled } from '../output/text-style.ts';

/** Returns the lines for people: the verdict first. `what` names what was verified. */
export function verificationLines(what: string, found: Verification): Line[] {
  const { faults, entries, first, last, signedUpTo, keys } = found;
  const range = entries === 0 ? '' : `, ${first} to ${last}`;
  const verdict =
    faults.length === 0
      ? lineOf(styled('green', '✓'), ` ${what} is whole: `)
      : lineOf(styled('red', '✗'), ` ${what} is not as it was written: `);
  return [
    lineOf(verdict, `${counted(entries, 'entry', 'entries')}${range}.`),
    `  signed  ${signedText(signedUpTo, last)}`,
    ...keys.map((key) => `  key     ${key}`),
    ...faults.map((one) => lineOf('  ', styled('red', `entry ${one.seq}`), `  ${one.what}`)),
  ];
}

/** Says that a log is not as it was written; undefined if it is. */
export function alteredText({ faults }: Verification): string | undefined {
  const [first] = faults;
  if (!first) return undefined;
  const rest = faults.length - 1;
  const more = rest > 0 ? `, and ${counted(rest, 'more fault')}` : '';
  return renderProblem({
    reason: `the audit log is not as it was written: entry ${first.seq}: ${first.what}${more}`,
    fix: '`crm-mirror audit verify` names each; do not rely on what the log says',
  });
}

function signedText(signedUpTo: number, last: number): string {
  if (signedUpTo === 0) return 'nothing yet: the end of a run signs';
  if (signedUpTo === last) return 'all of it';
  return `up to entry ${signedUpTo}; the ${counted(last - signedUpTo, 'entry', 'entries')} after it by the chain alone`;
}
