/**
 * A sink: one receiver of notifications. An implementation writes a message in the form that its
 * receiver expects, sends it once, and states what came of it. It neither retries nor remembers:
 * notifier.ts does both, alike for all sinks. Below is what people read in a message, as pure
 * functions.
 */
import type { Config } from '../../config/config.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import {
  type ReceiverKind,
  type Trouble,
  troubleLevels,
} from '../../config/schema/notices-schema.ts';
import { type Notice, titleOfNotice } from '../../views/status/trouble-notice.ts';
import { mendingPages } from '../../views/status/attention.ts';

/** How a receiver is reached. */
export interface Sending {
  /** The host, the only part of an address that is printed: the rest may be a secret. */
  host: string;
  /** Whether one message holds everything that a run found; otherwise each notice is a message. */
  isGrouped: boolean;
  /** Makes one attempt. Throws only the reason of `abort`, and bugs. */
  deliver(message: Message, abort: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
}

/** A receiver of notifications. */
export interface Sink extends Sending {
  /** The name under which the snapshot stores what the receiver was told. */
  name: string;
  kind: ReceiverKind;
  /** The same for all mirrors that name this receiver. It may contain secrets. */
  receiver: string;
  /** Whether the receiver is to hear of a problem. */
  wants(trouble: Trouble): boolean;
}

export interface Message {
  /** The same in every attempt. */
  id: string;
  /** When the message was made, in milliseconds since the epoch. */
  at: number;
  mirror: string;
  /** All mirrors that it is about, if there are several. */
  mirrors?: readonly string[];
  /** The id of the newest run about all people. */
  run: string | null;
  items: readonly [Item, ...Item[]];
  /**
   * The page of the console that mends it, if all items have the same one, else that of the mirror;
   * undefined if the configuration does not state the public address.
   */
  link: string | undefined;
}

/** One problem, or its end. */
export interface Item {
  type: Notice['type'] | 'mirror.test';
  level: 'error' | 'warning' | 'info';
  /** A few words, such as: changes await approval */
  title: string;
  reason: string;
  /** What to do; '' if there is nothing to do. */
  fix: string;
  /** The page of the console that mends it, such as approvals; by default the overview. */
  page?: string;
  /** The address of that page, if the message leads elsewhere. */
  link?: string;
}

/**
 * What came of an attempt. `sent`: with `but`, some of the people behind the receiver do not get
 * the message. `later`: another attempt may succeed, after `waitMs` if the receiver names a time.
 * `refused`: no attempt succeeds until somebody changes something.
 */
export type Outcome =
  | { is: 'sent'; but?: string }
  | { is: 'later'; reason: string; waitMs?: number | undefined }
  | { is: 'refused'; reason: string; fix: string };

export function itemOf({ type, trouble, subject, reason, fix }: Notice): Item {
  const isOver = type === 'mirror.recovered';
  const title = titleOfNotice({ type, subject });
  const page = isOver ? undefined : mendingPages[subject];
  const level = isOver ? 'info' : troubleLevels[trouble];
  return { type, level, title, reason, fix, ...(page !== undefined && { page }) };
}

/** Returns the page that mends all that is not solved; '' (the overview) if there are several. */
export function pageOf(items: readonly Item[]): string {
  const open = items.filter(({ level }) => level !== 'info');
  const [first, ...more] = new Set(open.map(({ page }) => page));
  return more.length === 0 ? (first ?? '') : '';
}

/** Returns the parts of a message that do not depend on what it reports. */
export function messageHead(
  { mirror, server }: Config,
  { clock, random }: { clock: Clock; random: Random },
) {
  const at = clock.now();
  const id = `msg_${at.toString(36)}${random().toString(36).slice(2, 12)}`;
  const base = server?.publicUrl;
  return { id, at, mirror, link: base === undefined ? undefined : `${base}/m/${mirror}` };
}

/** How many mirrors a title names: acme, beta, gamma and 4 more */
const namedAtMost = 3;

/** Returns the title of a message: acme: the platform does not answer, and 2 more */
export function titleOf({ mirror, mirrors = [mirror], items }: Message): string {
  const [first, ...more] = items;
  const others = mirrors.length - namedAtMost;
  const names = mirrors.slice(0, namedAtMost).join(', ');
  if (more.length === 0)
    return `${names}${others > 0 ? ` and ${others} more` : ''}: ${first.title}`;
  const solved = items.filter(({ level }) => level === 'info').length;
  const open = items.length - solved;
  const worst = items.find(({ level }) => level === levelOf({ items }));
  const parts = [
    ...(open > 0 && worst ? [worst.title] : []),
    ...(open > 1 ? [`and ${open - 1} more`] : []),
    ...(solved > 0 ? [`${solved} solved`] : []),
  ];
  return `${mirror}: ${parts.join(', ')}`;
}

export function levelOf({ items }: { items: readonly Item[] }): Item['level'] {
  const levels = new Set(items.map(({ level }) => level));
  if (levels.has('error')) return 'error';
  return levels.has('warning') ? 'warning' : 'info';
}

/** Returns the sentence that names the remedy, and its page; undefined if nothing is to be done. */
export function remedyOf({ fix, link }: Item): string | undefined {
  const lines = [
    ...(fix === '' ? [] : [`What to do: ${fix}`]),
    ...(link === undefined ? [] : [link]),
  ];
  return lines.length === 0 ? undefined : lines.join('\n');
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
