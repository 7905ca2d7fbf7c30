/** Renders messages about unfinished erasures. */
import type { Problem } from '../../../domain/errors.ts';
import type { Unfinished } from './unfinished-erasures.ts';

const shown = 5;

/** Returns what every run reports about unfinished erasures. */
export function sayUnfinished(all: readonly Unfinished[]): Problem {
  const hashes = all.slice(0, shown).map(({ hash }) => `'${hash}'`);
  const more = all.length > shown ? ` and ${all.length - shown} more, which \`status\` counts` : '';
  const many = all.length === 1 ? 'an erasure is' : `${all.length} erasures are`;
  const held = all.filter((one) => one.held).length;
  const again = held > 0 ? ' does it' : ' again';
  return {
    code: 'erasure-unfinished',
    reason: `${many} not finished${sayHeld(held)}`,
    fix: `\`crm-mirror forget\`${again}: ${hashes.join(', ')}${more}`,
  };
}

/** Returns the text about erasures that a guard holds, or '' if there are none. */
export function sayHeld(count: number): string {
  if (count === 0) return '';
  return ` (${count} awaiting approval: the CRM asks for more erasures than guards.deletes lets pass)`;
}
