/**
 * Ids of records: 15 characters that tell upper case from lower, or these and three more that spell
 * their cases. Both are the same record, and its id here is the long one.
 */
const spelled = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';

export type ObjectName = 'Contact' | 'Lead';

const prefixes: Readonly<Record<string, ObjectName>> = { '003': 'Contact', '00Q': 'Lead' };

/** The long form; undefined: it is no id of a record. */
export function longId(text: string): string | undefined {
  if (!/^[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?$/.test(text)) return undefined;
  const short = text.slice(0, 15);
  const long = short + [0, 5, 10].map((from) => casesOf(short.slice(from, from + 5))).join('');
  return text.length === 15 || text === long ? long : undefined;
}

/** What kind of record a long id is of; undefined: of another kind than these. */
export function objectOf(id: string): ObjectName | undefined {
  return prefixes[id.slice(0, 3)];
}

/** One bit for each of five characters: whether it is a capital. */
function casesOf(five: string): string {
  const bits = [...five].map((char, at) => (/[A-Z]/.test(char) ? 2 ** at : 0));
  return spelled.charAt(bits.reduce((sum, bit) => sum + bit, 0));
}
