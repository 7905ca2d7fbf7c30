/**
 * Formats a whole number with thousands separators: 1,234. It does not use `toLocaleString`, whose
 * first call in a process takes 15 ms.
 */
export function withCommas(n: number): string {
  return String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Formats a count with its noun: 1 change, 2 changes, 2 people */
export function counted(n: number, word: string, many = `${word}s`): string {
  return `${withCommas(n)} ${n === 1 ? word : many}`;
}
