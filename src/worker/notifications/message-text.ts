/** Writes what people read in a message. All functions are pure. */
import { troubleLevels } from '../../config/schema/notices-schema.ts';
import { type Notice, titleOfNotice } from '../../views/status/trouble-notice.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Item, Message } from './sink.ts';

/** The page of the console that mends a problem, by its attention code; others have none. */
const pages: Readonly<Record<string, string>> = {
  held: 'approvals',
  opt_outs_many: 'approvals',
  opt_outs_unreadable: 'problems',
  opt_outs_refused: 'problems',
  returns_rejected: 'problems',
  run_failed: 'runs',
  stale: 'runs',
  alert_refused: 'runs',
  alert_run_time: 'runs',
  alert_deviation: 'runs',
  audit_log: 'audit',
};

/** Returns the item for a notice. */
export function itemOf({ type, trouble, subject, reason, fix }: Notice): Item {
  const isOver = type === 'mirror.recovered';
  const title = titleOfNotice({ type, subject });
  const page = isOver ? undefined : pages[subject];
  const level = isOver ? 'info' : troubleLevels[trouble];
  return { type, level, title, reason, fix, ...(page !== undefined && { page }) };
}

/** Returns the title of a message: acme: the platform does not answer */
export function titleOf({ mirror, mirrors = [mirror], items }: Message): string {
  const [first, ...more] = items;
  if (more.length === 0) return `${namesOf(mirrors)}: ${first.title}`;
  const solved = items.filter(({ level }) => level === 'info').length;
  const problems = items.length - solved;
  const parts = [
    ...(problems > 0 ? [counted(problems, 'problem')] : []),
    ...(solved > 0 ? [`${solved} solved`] : []),
  ];
  return `${mirror}: ${parts.join(', ')}`;
}

const namedAtMost = 3;

/** Formats the names of mirrors: acme, beta and 4 more */
function namesOf(mirrors: readonly string[]): string {
  const more = mirrors.length - namedAtMost;
  if (more <= 0) return mirrors.join(', ');
  return `${mirrors.slice(0, namedAtMost).join(', ')} and ${more} more`;
}

/** Returns the most serious level of a message. */
export function levelOf({ items }: Message): Item['level'] {
  const levels = new Set(items.map(({ level }) => level));
  if (levels.has('error')) return 'error';
  return levels.has('warning') ? 'warning' : 'info';
}

/** Returns the sentence that names the remedy, or undefined if there is nothing to do. */
export function remedyOf({ fix }: Item): string | undefined {
  return fix === '' ? undefined : `What to do: ${fix}`;
}

/** Returns a message as plain text without its title. */
export function plainText(message: Message): string {
  const { items, link, run, mirrors } = message;
  const isAlone = items.length === 1;
  const blocks = items.map((item) =>
    [...(isAlone ? [] : [headOf(item)]), item.reason, remedyOf(item)].filter(Boolean).join('\n'),
  );
  const named = mirrors && `Mirrors: ${mirrors.join(', ')}`;
  const end = [named, link && `Console: ${link}`, run !== null && `Newest run: ${run}`].filter(
    Boolean,
  );
  return [...blocks, ...(end.length > 0 ? [end.join('\n')] : [])].join('\n\n');
}

/** Returns the head of an item: Error: something failed */
export function headOf({ level, title }: Item): string {
  const words = { error: 'Error: ', warning: 'Warning: ', info: '' };
  const head = words[level] + title;
  return head.charAt(0).toUpperCase() + head.slice(1);
}
