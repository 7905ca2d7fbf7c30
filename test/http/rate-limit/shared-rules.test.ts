/** Processes that share a limit compute it in the same way: by rules that have a number. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** All files that take part in the result of a message. */
const files = [
  'learned-limits',
  'limit-learning',
  'permit-decision',
  'request-usage',
  'shared/fleet-budget',
];

/** The code of a file without its comments, which change nothing. */
function codeOf(file: string): string {
  const text = readFileSync(join('src/http/rate-limit', `${file}.ts`), 'utf8');
  return text.replaceAll(/^\s*(?:\/\/|\/\*\*|\*).*$/gm, '').replaceAll(/\s+/g, ' ');
}

test('rules that change get another number', () => {
  const hash = createHash('sha256').update(files.map(codeOf).join('\n')).digest('hex').slice(0, 12);
  const text = readFileSync('src/http/rate-limit/shared/shared-budget.ts', 'utf8');
  const rules = /`crm-mirror:limit:(\d+):/.exec(text)?.[1];
  // If this fails: raise the number in the key, so that workers before and after do not compute
  // together, say so in the changelog, and write the number and the hash of the new rules here.
  expect({ rules, hash }).toEqual({ rules: '5', hash: '0852a92ed47b' });
});
