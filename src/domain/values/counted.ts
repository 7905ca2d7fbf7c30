/** Formats a number with thousands separators: 1,234 */
export function withCommas(n: number): string {
  return n.toLocaleString('en');
}

/** Formats a count with its noun: 1 change, 2 changes, 2 people */
export function counted(n: number, word: string, many = `${word}s`): string {
  return `${withCommas(n)} ${n === 1 ? word : many}`;
}
