/** Converts the bytes of a CSV file to UTF-8 from whatever encoding it was exported in. */
import { Invalid } from '../../domain/errors.ts';
import { hasUtf16Pattern, markedEncoding } from '../shared/files/detect-encoding.ts';

export const encodings = ['utf-8', 'utf-16', 'windows-1252'] as const;
export type Encoding = (typeof encodings)[number];

/** Decodes the chunks of one file in order. */
export interface ChunkDecoder {
  /**
   * Returns the chunk in UTF-8, or undefined if it contains bytes that are invalid in the encoding.
   * Call it with undefined at the end, because a character may span two chunks.
   */
  decode(chunk: Buffer | undefined): Buffer | undefined;
  /** Returns the error for such bytes at or shortly after a line of the file `name`. */
  refusal(name: string, line: number): Invalid;
}

/**
 * Creates the decoder for a file that begins with `sample`. A byte order mark takes precedence over
 * `encoding`.
 */
export function chunkDecoder(sample: Buffer, encoding: Encoding = 'utf-8'): ChunkDecoder {
  const label = markedEncoding(sample) ?? (encoding === 'utf-16' ? 'utf-16le' : encoding);
  const isUtf8 = label === 'utf-8';
  const isUnmarkedUtf16 = isUtf8 && hasUtf16Pattern(sample);
  const decoder = new TextDecoder(label, { fatal: true });
  return {
    decode(chunk) {
      if (isUnmarkedUtf16) return undefined;
      try {
        const text = decoder.decode(chunk, { stream: chunk !== undefined });
        return isUtf8 && chunk ? chunk : Buffer.from(text);
      } catch (error) {
        if (error instanceof TypeError) return undefined;
        throw error;
      }
    },
    refusal(name, line) {
      if (isUnmarkedUtf16) {
        const fix = 'set encoding: utf-16 in the source, or save the file as UTF-8';
        return new Invalid(`${name}: the text is UTF-16`, { fix });
      }
      const fix = isUtf8
        ? 'set encoding: windows-1252 in the source if a Western Windows program wrote it, or save the file as UTF-8'
        : 'set the encoding of the source to the one that the export uses, or save the file as UTF-8';
      const what = isUtf8 ? 'UTF-8' : label.replace(/le|be$/, '').toUpperCase();
      return new Invalid(`${name}: the text is not ${what} (at or soon after line ${line})`, {
        fix,
      });
    },
  };
}
