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
