import { hash } from 'node:crypto';

/** 52 bits of a hash: a number takes a fraction of the memory of a text. */
export function markOf(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 13), 16);
}
