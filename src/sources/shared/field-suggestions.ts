/** Names of columns and fields, for messages. */

const LISTED = 30;

/** On one line and of bearable length, whatever a name may hold. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/**
 * The first of those that were found, and how many more there are. Where records are named by their
 * addresses, these are names of people.
 */
export function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).map(found).join(', ')}${more}`;
}

function found(name: string): string {
  return name.includes('@') ? '"…@…"' : quoted(name);
}

/** The name that differs least, when that is little enough to be a slip. */
export function nearest(wanted: string, names: readonly string[]): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const name of names) {
    if (name === '' || name.length > 100) continue;
    const distance = distanceOf(plain(wanted), plain(name));
    if (distance < (best?.distance ?? Infinity)) best = { name, distance };
  }
  return best && best.distance <= Math.max(1, wanted.length / 3) ? best.name : undefined;
}

/** Without case, spaces and punctuation: "E-Mail" is a near miss of "email". */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_.-]/g, '');
}

/** Levenshtein's distance, one row of the matrix at a time. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const [left = 0, above = 0, corner = 0] = [next[j - 1], row[j], row[j - 1]];
      next.push(Math.min(left + 1, above + 1, corner + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
