import type { ContactRow } from '../shared/row-types.ts';
import type { Quirk } from './quirk.ts';

/** Searches with wildcards: `%` stands for any text, `_` for one character. */
export function searchWildcards(): Quirk {
  const pattern = (search: string) => {
    const plain = search.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    return new RegExp(plain.replaceAll('%', '.*').replaceAll('_', '.'), 's');
  };
  return { behaviour: { finds: (key, search) => pattern(search).test(key) } };
}

/** Keeps the case of emails that people write; an enrolment finds only the exact spelling. */
export function emailAsGiven(): Quirk {
  return { behaviour: { keepsCase: true } };
}

/** Lists the rows of one millisecond in the opposite order every other time. */
export function unsortedTies(): Quirk {
  let turned = false;
  const turn = (rows: ContactRow[]): ContactRow[] =>
    rows.toSorted((a, b) => b.createdAt - a.createdAt || a.serial - b.serial);
  return {
    restart: () => void (turned = false),
    behaviour: {
      orders(rows) {
        turned = !turned;
        return turned ? rows : turn(rows);
      },
    },
  };
}
