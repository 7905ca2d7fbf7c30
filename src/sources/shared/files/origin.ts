/** Where the bytes of a file come from: a path, a web address or standard input. */
import type { Flaw } from '../read-certificate.ts';

/** One place that bytes come from. */
export interface Origin {
  /** The name for messages: a path or a host. */
  name: string;
  /** Whether its name says that it is compressed. */
  isPacked: boolean;
  /** Opens it. Throws Invalid, Busy and Unavailable when it cannot be read. */
  open(signal: AbortSignal): Promise<Opened>;
  /** Does the same as `still` of a source. */
  still(reading: string): boolean;
}

/** An opened file. It can be read once, from its first byte to its last. */
export interface Opened {
  reading: string;
  /** The bytes as they are stored. Throws Unavailable when they break off. */
  bytes: AsyncIterable<Buffer>;
  /** Returns what suggests that the bytes are not all; `whole`: they were read to their end. */
  flaws(whole: boolean): Promise<Flaw[]>;
  close(): Promise<void>;
}
