/** Whether bytes are UTF-8, before anything is made of them: decoding would replace silently. */
import { Invalid } from '../../../domain/errors.ts';

/**
 * Tells of each chunk in turn whether the text is still UTF-8; `undefined` ends it. A character
 * may lie across the border of two chunks.
 */
export function utf8Check(): (chunk: Buffer | undefined) => boolean {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (chunk) => {
    try {
      decoder.decode(chunk, { stream: chunk !== undefined });
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false;
      throw error;
    }
  };
}

/** Throws Invalid when a file that begins with `sample` is UTF-16: valid UTF-8, full of NULs. */
export function assertNotUtf16(sample: Buffer, path: string): void {
  const marked = sample.length >= 2 && ['fffe', 'feff'].includes(sample.toString('hex', 0, 2));
  if (!marked && !hasNulPattern(sample.subarray(0, 1024))) return;
  throw new Invalid(`${path}: the text is UTF-16; save the file as UTF-8`);
}

/** Western text in UTF-16 has a NUL in every other byte; a stray NUL or two is not that. */
function hasNulPattern(bytes: Buffer): boolean {
  const nuls: [even: number, odd: number] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === 0) nuls[at % 2 === 0 ? 0 : 1] += 1;
  return Math.max(...nuls) >= 4 && Math.max(...nuls) > bytes.length / 4;
}
