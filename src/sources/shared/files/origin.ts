/** Where the bytes of a file come from. */
import type { Flaw } from '../read-certificate.ts';

export interface Origin {
  /** For messages: a path, or a host. */
  name: string;
  /** Whether it says of itself that it is compressed. */
  isPacked: boolean;
  /** Throws Invalid, Busy and Unavailable for what cannot be read. */
  open(signal: AbortSignal): Promise<Opened>;
  /** As that of a source. */
  still(reading: string): boolean;
}

/** To be read once, from its first byte to its last. */
export interface Opened {
  reading: string;
  /** As it is stored. Throws Unavailable where it breaks off. */
  bytes: AsyncIterable<Buffer>;
  /** What speaks against its being all; `whole`: the bytes were read to their end. */
  flaws(whole: boolean): Promise<Flaw[]>;
  close(): Promise<void>;
}
