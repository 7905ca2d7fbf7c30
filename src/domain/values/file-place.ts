/** Where a file that the configuration names lies. */
export type Place = 'file' | 'address' | 'input';

/**
 * Returns where a path points: `-` is standard input; a text that begins with a scheme is a web
 * address, or is meant to be one.
 */
export function placeOf(path: string): Place {
  if (path === '-') return 'input';
  return /^[a-z][a-z\d+.-]+:\/\//i.test(path) ? 'address' : 'file';
}
