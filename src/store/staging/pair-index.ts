/**
 * Numbers up to `most` pairs of texts in the order in which they are added, and finds them by their
 * first text. It takes their letters and some 17 bytes for each pair: strings in a Map would take
 * three times as much, and the time of garbage collection.
 */
export function pairIndex(most: number) {
  const slots = 2 ** Math.ceil(Math.log2(2 * most + 2));
  const table = new Uint32Array(slots);
  /** Where each text begins: the first and the second of a pair lie side by side. */
  const starts = new Uint32Array(2 * most + 1);
  let letters = Buffer.alloc(32 * most + 1_000);
  let count = 0;

  const isText = (nth: number, text: string): boolean => {
    const start = starts[nth] ?? 0;
    const { length } = text;
    if ((starts[nth + 1] ?? 0) - start !== length) return false;
    for (let at = 0; at < length; at += 1)
      if (letters[start + at] !== text.charCodeAt(at)) return false;
    return true;
  };
  /** Returns the slot of a first text, or the free one where it belongs. */
  const slotOf = (text: string): number => {
    for (let slot = hashOf(text) & (slots - 1); ; slot = (slot + 1) & (slots - 1)) {
      const one = table[slot] ?? 0;
      if (one === 0 || isText(2 * one - 2, text)) return slot;
    }
  };
  /** Writes a text. Returns false if it has a letter that is not in Latin-1. */
  const write = (text: string, start: number): boolean => {
    for (let at = 0; at < text.length; at += 1) {
      const letter = text.charCodeAt(at);
      if (letter > 0xff) return false;
      letters[start + at] = letter;
    }
    return true;
  };
  return {
    /** Adds a pair if its first text is new and both are in Latin-1. Returns whether it does. */
    add(first: string, second: string): boolean {
      const slot = slotOf(first);
      if (table[slot] !== 0) return false;
      const start = starts[2 * count] ?? 0;
      const middle = start + first.length;
      const end = middle + second.length;
      if (end > letters.length) letters = Buffer.concat([letters], Math.ceil(end * 1.5));
      if (!write(first, start) || !write(second, middle)) return false;
      starts[2 * count + 1] = middle;
      starts[2 * count + 2] = end;
      count += 1;
      table[slot] = count;
      return true;
    },
    /** Returns the number of the pair with this first text, from 0 on; undefined if none has it. */
    find(first: string): number | undefined {
      const one = table[slotOf(first)] ?? 0;
      return one === 0 ? undefined : one - 1;
    },
    isSecond: (at: number, text: string): boolean => isText(2 * at + 1, text),
    first: (at: number): string => letters.toString('latin1', starts[2 * at], starts[2 * at + 1]),
    second: (at: number): string =>
      letters.toString('latin1', starts[2 * at + 1], starts[2 * at + 2]),
    size: () => count,
  };
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1)
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
