import type { Answer } from '../domain/exchange.ts';
import type { Key, RecordedRow } from '../domain/record.ts';
import type { PlatformFacts } from './platform-facts.ts';

/** A test of one content of a template, to one address. */
export interface TestClaim {
  key: Key;
  /** A fingerprint of the content. */
  content: string;
  to: string;
}

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
  /** Claims tests of templates, so that none is sent twice; undefined if nothing is remembered. */
  claims?: {
    /** Returns false if the test was claimed before. The claim is on disk when this returns. */
    claim(test: TestClaim): boolean;
    /** Gives the claim back, because the test was certainly not sent. */
    release(test: TestClaim): void;
  };
  /** Is called with the answer to each attempt. */
  answered?(answer: Answer): void;
}
