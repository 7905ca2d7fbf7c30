/**
 * Returns whether a file that begins with `sample` is UTF-16 without a byte order mark: every other
 * byte is NUL, as in Western text. One or two stray NULs do not match.
 */
export function hasUtf16Pattern(sample: Buffer): boolean {
  const bytes = sample.subarray(0, 1024);
  const nuls: [even: number, odd: number] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === 0) nuls[at % 2 === 0 ? 0 : 1] += 1;
  return Math.max(...nuls) >= 4 && Math.max(...nuls) > bytes.length / 4;
}

/** Returns the encoding that a byte order mark states, or undefined if there is none. */
export function markedEncoding(sample: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' | undefined {
  if (sample.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf]))) return 'utf-8';
  const mark = sample.toString('hex', 0, 2);
  if (mark === 'fffe') return 'utf-16le';
  return mark === 'feff' ? 'utf-16be' : undefined;
}
