import type { Answer } from '../domain/exchange.ts';
import type { RecordedRow } from '../domain/record.ts';
import type { PlatformFacts } from './platform-facts.ts';

/** The signals and facts with which a change is sent. */
export interface SendContext {
  /** Ends the wait before the request is sent. */
  signal: AbortSignal;
  /** Ends a request that is in flight. */
  abort: AbortSignal;
  /** Whether this run read the record recently enough before sending the change. */
  seen: boolean;
  /** Returns the currently known facts about the platform. */
  facts(): PlatformFacts;
  /** Returns the currently recorded row. */
  recorded(): RecordedRow | undefined;
  /** Is awaited immediately before each attempt is sent. Throws NotSent to prevent it. */
  leaves(): Promise<void>;
  /** Is called with the answer to each attempt. */
  answered?(answer: Answer): void;
}
