/**
 * A sink: one receiver of notifications. An implementation writes a message in the form that its
 * receiver expects, sends it once, and states what came of it. It neither retries nor remembers:
 * notifier.ts does both, alike for all sinks.
 */
import type { ReceiverKind, Trouble } from '../../config/schema/notices-schema.ts';
import type { Notice } from '../../views/status/trouble-notice.ts';

/** A receiver of notifications. */
export interface Sink {
  /** The name under which the snapshot stores what the receiver was told. */
  name: string;
  kind: ReceiverKind;
  /** The same for all mirrors that name this receiver. It may contain secrets. */
  receiver: string;
  /** The host, the only part of an address that is printed: the rest may be a secret. */
  host: string;
  /** Whether one message holds everything that a run found; otherwise each notice is a message. */
  isGrouped: boolean;
  /** Whether the receiver is to hear of a problem. */
  wants(trouble: Trouble): boolean;
  /** Makes one attempt. Throws only the reason of `abort`, and bugs. */
  deliver(message: Message, abort: AbortSignal): Promise<Outcome>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** A message. */
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
  /** What is reported, at least one. */
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
