/** Formats 1234 as 1,234. A first call of `toLocaleString` would take 15 ms. */
export function withCommas(n: number): string {
  return String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Formats a count with its noun: 1 change, 2 changes, 2 people */
export function counted(n: number, word: string, many = `${word}s`): string {
  return `${withCommas(n)} ${n === 1 ? word : many}`;
}

/** Returns the middle of some numbers, or the mean of the two middle ones; 0 if there are none. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}
