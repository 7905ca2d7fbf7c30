/** Formats times, sizes and counts for people; the words for changes, and for who decided them. */
import type { KeptChange } from '../../store/tables/run-history.ts';

/** Formats milliseconds since the epoch: 2026-08-06T03:00:00Z */
export function instant(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
}

/** Formats the time in full, because a rounded range could exclude the moment itself. */
export function exactInstant(at: number): string {
  return new Date(at).toISOString();
}

/** Formats the time of day in UTC: 02:17 UTC */
export function timeOfDay(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}

/** Formats elapsed time, rounded down, in at most two units: 40 s, 12 min, 3 h 12 min, 2 d 4 h */
export function range(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 2) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return two(`${hours} h`, minutes % 60, 'min');
  return two(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

/** Formats a duration, rounded up: 0.5 s, 60 s, 2 min 20 s, 12 min, 3 h 12 min */
export function lasting(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 600) return two(`${Math.floor(seconds / 60)} min`, seconds % 60, 's');
  const unitMs = seconds < 48 * 3600 ? 60_000 : 3_600_000;
  return range(Math.ceil(ms / unitMs) * unitMs);
}

/** Formats like `instant`, or returns null for an unknown time. */
export function instantOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : instant(at);
}

function two(first: string, rest: number, unit: string): string {
  return rest === 0 ? first : `${first} ${rest} ${unit}`;
}

/** Formats a number of bytes, rounded up: 12 kB, 1.4 MB */
export function size(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Formats a time range, such as: after 2026-01-01T00:00:00Z and by 2026-01-02T00:00:00Z */
export function timeWords({ after, until }: Record<'after' | 'until', string | null>): string {
  return `${after === null ? '' : `after ${after} and `}by ${until}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Formats the day of a time in UTC: 3 May 2026 */
export function dayText(instant: string): string {
  const at = new Date(instant);
  return `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

const words: Readonly<Record<string, readonly [plan: string, done: string]>> = {
  create: ['create', 'created'],
  opt_in: ['opt in', 'opted in'],
  opt_out: ['opt out', 'opted out'],
  delete: ['delete', 'deleted'],
  update: ['update', 'updated'],
  complete: ['complete', 'completed'],
  archive: ['archive', 'archived'],
};

/** Returns what a change is called before it is made, or when it is done: create, created. */
export function changeName(op: string, isDone: boolean): string {
  return words[op]?.[isDone ? 1 : 0] ?? op.replaceAll('_', ' ');
}

/** Returns what became of a change. */
export function outcomeName(state: string): string {
  return outcomes[state] ?? state;
}

const outcomes: Readonly<Record<string, string>> = {
  acked: 'done',
  rejected: 'refused',
  stale: 'no longer right and not sent',
  unknown: 'outcome unknown',
  sent: 'sent, without an answer yet',
  planned: 'not sent',
};

interface ToldApprover {
  plan: string;
  by: string | null;
  reason: string | null;
}

/** Returns the approval of a change, or null if it needed none. */
export function approvalOf(change: KeptChange): ToldApprover | null {
  const { approvedPlan: plan, approvedBy: by, approvedFor: reason } = change;
  return plan === null ? null : { plan, by, reason };
}

/** Formats it as the end of a line: ", approved by anna on mail-1 (checked the export)" */
export function approvalWords(approval: ToldApprover | null): string {
  if (approval === null) return '';
  return `, approved${byWords(approval)}`;
}

/** Formats who decided, and why. */
export function byWords({ by, reason }: { by: string | null; reason: string | null }): string {
  if (by === null) return '';
  return ` by ${by}${reason === null ? '' : ` (${reason})`}`;
}
