/** What is said of erasures that are asked for and not done. */
import type { Unfinished } from './unfinished-erasures.ts';

const shown = 5;

/** What a run says of them, each time. */
export function sayUnfinished(all: readonly Unfinished[]): string {
  const hashes = all.slice(0, shown).map(({ hash }) => `'${hash}'`);
  const more = all.length > shown ? ` and ${all.length - shown} more, which \`status\` counts` : '';
  const many = all.length === 1 ? 'an erasure is' : `${all.length} erasures are`;
  const held = all.filter((one) => one.held).length;
  const again = held > 0 ? ' does it' : ' again';
  return `${many} not finished${sayHeld(held)} → \`crm-mirror forget\`${again}: ${hashes.join(', ')}${more}`;
}

/** Why some of them were not begun. */
export function sayHeld(count: number): string {
  if (count === 0) return '';
  return ` (${count} held by a guard: the CRM tells of more erasures than guards.deletes lets pass)`;
}
