const LISTED = 30;

/** Returns a name in quotes, on one line and truncated to 60 characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/** Returns the first names and how many more. One with an @ may be a person's: masked. */
export function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  const shown = names.slice(0, LISTED).map((name) => (name.includes('@') ? '"…@…"' : quoted(name)));
  return `${shown.join(', ')}${more}`;
}

/** Returns a hint for each missing name that resembles one of `names`: did you mean "a" for "b"? */
export function hintsFor(missing: readonly string[], names: readonly string[]): string[] {
  return missing.flatMap((wanted) => {
    let best: { name: string; distance: number } | undefined;
    for (const name of names) {
      if (name === '' || name.length > 100) continue;
      const distance = levenshtein(plain(wanted), plain(name));
      if (distance < (best?.distance ?? Infinity)) best = { name, distance };
    }
    // A name that is further away is another name, and no misspelling.
    if (!best || best.distance > Math.max(1, wanted.length / 3)) return [];
    return [`did you mean ${quoted(best.name)} for ${quoted(wanted)}?`];
  });
}

/** Returns a name without case, spaces and punctuation, so that "E-Mail" is close to "email". */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_.-]/g, '');
}

/** Computes the distance one row of the matrix at a time. */
function levenshtein(a: string, b: string): number {
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
