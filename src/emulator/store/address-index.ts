import type { ContactRow } from '../shared/row-types.ts';

/**
 * Finds the contacts whose address may contain a text without reading all addresses. An address is
 * indexed by the characters before each @ in it.
 */
export interface AddressIndex {
  add(row: ContactRow): void;
  remove(row: ContactRow): void;
  /**
   * Returns all contacts whose key contains the text, and perhaps others, in any order. Returns
   * undefined if the text says too little.
   */
  holding(text: string): ReadonlySet<ContactRow> | undefined;
  clear(): void;
}

/** How many characters before an @ are indexed. */
const width = 4;
const nobody: ReadonlySet<ContactRow> = new Set();

/** Creates an empty index. */
export function createAddressIndex(): AddressIndex {
  const rows = new Map<string, Set<ContactRow>>();
  return {
    add(row) {
      for (const name of namesIn(row.key)) {
        const known = rows.get(name);
        if (known) known.add(row);
        else rows.set(name, new Set([row]));
      }
    },
    remove(row) {
      for (const name of namesIn(row.key)) rows.get(name)?.delete(row);
    },
    holding(text) {
      // In some searches % and _ stand for others.
      const name = namesIn(text).find((one) => !/[%_]/.test(one));
      return name === undefined ? undefined : (rows.get(name) ?? nobody);
    },
    clear: () => rows.clear(),
  };
}

/** Returns the characters before each @ that has enough of them before it. */
function namesIn(text: string): string[] {
  const names: string[] = [];
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    if (at >= width) names.push(text.slice(at - width, at));
  }
  return names;
}
