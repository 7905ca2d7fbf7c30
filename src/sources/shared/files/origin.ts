/** Defines where the bytes of a file come from: a path, a web address or standard input. */
import type { Flaw } from '../read-certificate.ts';

/** An origin of bytes. */
export interface Origin {
  /** The name for messages: a path or a host. */
  name: string;
  /** Whether the file name indicates compression. */
  isPacked: boolean;
  /** Opens the file. Throws Invalid, Busy or Unavailable if it cannot be read. */
  open(signal: AbortSignal): Promise<Opened>;
  /** Works like `still` of a source. */
  still(reading: string): boolean;
}

/** An opened file. It can be read once, from its first byte to its last. */
export interface Opened {
  reading: string;
  /** The bytes as they are stored. Throws Unavailable if they break off. */
  bytes: AsyncIterable<Buffer>;
  /** The number of stored bytes; undefined if it is not known. */
  size?: number;
  /** Returns the signs that bytes are missing. `whole` states whether they were read to the end. */
  flaws(whole: boolean): Promise<Flaw[]>;
  close(): Promise<void>;
}
