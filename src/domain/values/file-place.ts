/** Where a file that a configuration names lies. */
export type Place = 'file' | 'address' | 'input';

/** `-` is standard input; what begins with a scheme is an address of the web, or is meant to be. */
export function placeOf(path: string): Place {
  if (path === '-') return 'input';
  return /^[a-z][a-z\d+.-]+:\/\//i.test(path) ? 'address' : 'file';
}
