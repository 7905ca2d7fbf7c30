/** What taking a record off the platform for good is told, and tells. */
import type { Key, RecordedRow } from '../domain/record.ts';

/** Whom to erase. `known`: what an attempt before this one found; each deed is told when done. */
export interface Erasing {
  key: Key;
  recorded: RecordedRow | undefined;
  known: readonly string[];
  tell(deed: Deed): void;
}

/** How long something may take: `signal` ends the waiting, `abort` what is under way. */
export interface Deadlines {
  signal: AbortSignal;
  abort: AbortSignal;
}

/** What was done to a record of the platform, by its id; a deletion may be told twice. */
export type Deed =
  { is: 'found' | 'deleted'; id: string } | { is: 'opted out'; id: string; channel: string };
