/** Tells what a verification of the audit log found. */
import type { Head } from '../../store/audit/audit-log.ts';
import type { Verification } from '../../store/audit/verify-log.ts';
import { Invalid, renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import type { VerifiedFile } from './export-file.ts';

/** Returns the lines for people: the verdict first. `what` names what was verified. */
export function verificationLines(what: string, found: Verification, whole = 'whole'): Line[] {
  const { faults, entries, first, last, keys } = found;
  const range = entries === 0 ? '' : `, ${first} to ${last}`;
  const verdict =
    faults.length === 0
      ? lineOf(styled('green', '✓'), ` ${what} is ${whole}: `)
      : lineOf(styled('red', '✗'), ` ${what} is not as it was written: `);
  return [
    lineOf(verdict, `${counted(entries, 'entry', 'entries')}${range}.`),
    `  signed  ${signedText(found)}`,
    ...keys.map((key) => `  key     ${key}`),
    ...faults.map((one) => lineOf('  ', styled('red', `entry ${one.seq}`), `  ${one.what}`)),
  ];
}

/** Returns the lines for people about an export. `kept` is an end that is known from elsewhere. */
export function exportLines(file: string, found: VerifiedFile, kept: Head | undefined): Line[] {
  const { last, unchecked } = found;
  const isKept = kept !== undefined && kept.seq === last;
  const end = isKept
    ? `entry ${last} is the one that --head names; the file does not tell what follows it`
    : `the file does not tell what follows entry ${last}, or whether it was cut there`;
  const said = counted(unchecked, 'entry', 'entries');
  const lacking = `for ${said}, run or approvedBy cannot be checked: the file lacks what they repeat`;
  return [
    ...verificationLines(`The export ${file}`, found, 'as it was written'),
    ...(last > 0 ? [`  end     ${end}`] : []),
    ...(unchecked > 0 ? [`  note    ${lacking}`] : []),
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

/** Reads `SEQ:HASH`. Throws Invalid for anything else. */
export function headIn(text: string): Head {
  const [, seq, hash = ''] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq !== undefined) return { seq: Number(seq), hash: Buffer.from(hash, 'hex') };
  throw new Invalid(`--head ${text}: this is no number and hash of an entry`, {
    fix: 'give `head` as `audit verify --json` prints it: the number, a colon, 64 hexadecimal digits',
  });
}

function signedText({ faults, first, last, signedUpTo, provenUpTo }: Verification): string {
  if (signedUpTo === 0) return 'nothing yet: the end of a run signs';
  if (faults.length > 0) {
    if (provenUpTo === 0) return 'signed, but no entry is proven';
    return `signed; entries ${first} to ${provenUpTo} are proven`;
  }
  if (signedUpTo === last) return 'all of it';
  return `up to entry ${signedUpTo}; the ${counted(last - signedUpTo, 'entry', 'entries')} after it by the chain alone`;
}
