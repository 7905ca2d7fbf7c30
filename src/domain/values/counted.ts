/** Formats a count with its noun: 1 change, 2 changes, 2 people */
export function counted(n: number, word: string, many = `${word}s`): string {
  return `${n.toLocaleString('en')} ${n === 1 ? word : many}`;
}
