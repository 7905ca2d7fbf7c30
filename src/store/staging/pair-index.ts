/** Stores texts in Latin-1 one after the other: their letters and nothing else. */
export function letterStore(size: number) {
  let letters = Buffer.alloc(size);
  let end = 0;
  return {
    /** Returns where the text begins; undefined if it has a letter that is not in Latin-1. */
    add(text: string): number | undefined {
      const start = end;
      end += text.length;
      if (end > letters.length) letters = Buffer.concat([letters], Math.ceil(end * 1.5));
      for (let at = 0; at < text.length; at += 1) {
        const letter = text.charCodeAt(at);
        if (letter > 0xff) {
          end = start;
          return undefined;
        }
        letters[start + at] = letter;
      }
      return start;
    },
    has(text: string, from: number, to: number): boolean {
      if (to - from !== text.length) return false;
      for (let at = 0; at < text.length; at += 1)
        if (letters[from + at] !== text.charCodeAt(at)) return false;
      return true;
    },
    text: (from: number, to: number): string => letters.toString('latin1', from, to),
  };
}

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
  const letters = letterStore(32 * most + 1_000);
  let count = 0;

  const isText = (nth: number, text: string): boolean =>
    letters.has(text, starts[nth] ?? 0, starts[nth + 1] ?? 0);
  const textOf = (nth: number): string => letters.text(starts[nth] ?? 0, starts[nth + 1] ?? 0);
  /** Returns the slot of a first text, or the free one where it belongs. */
  const slotOf = (text: string): number => {
    for (let slot = hashOf(text) & (slots - 1); ; slot = (slot + 1) & (slots - 1)) {
      const one = table[slot] ?? 0;
      if (one === 0 || isText(2 * one - 2, text)) return slot;
    }
  };
  return {
    /** Adds a pair if its first text is new and both are in Latin-1. Returns whether it does. */
    add(first: string, second: string): boolean {
      const slot = slotOf(first);
      if (table[slot] !== 0) return false;
      const start = letters.add(first + second);
      if (start === undefined) return false;
      starts[2 * count + 1] = start + first.length;
      starts[2 * count + 2] = start + first.length + second.length;
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
    first: (at: number): string => textOf(2 * at),
    second: (at: number): string => textOf(2 * at + 1),
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
