/**
 * The keys of a JSON document, one line each, with the types that stand there: `lastRuns.full.ms
 * number`. Lists are `[]`; a key that is data (an address, a route, a channel) is `*`.
 */
function shapeOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => shapeOf(item, `${at}[]`));
    return value.length === 0 ? [`${at} []`] : [...new Set(items)];
  }
  if (typeof value !== 'object' || value === null) {
    return [`${at} ${value === null ? 'null' : typeof value}`];
  }
  const lines = Object.entries(value).flatMap(([key, one]) =>
    shapeOf(one, `${at}${at === '' ? '' : '.'}${nameOf(key)}`),
  );
  return lines.length === 0 ? [`${at} {}`] : [...new Set(lines)];
}

/** Several documents of one kind: what any of them has. */
export function shapeOfAll(documents: readonly unknown[]): string {
  const lines = new Set(documents.flatMap((document) => shapeOf(document)));
  return `${[...lines].toSorted().join('\n')}\n`;
}

function nameOf(key: string): string {
  const isData = /[@/]|^ch_|^contacts\.|^templates\.|^domains\.|^keys\.|^\d/.test(key);
  return isData ? '*' : key;
}
