/**
 * Ids of records: 15 characters that distinguish upper and lower case, or these with three more
 * that encode the case. Both name the same record; the long form is its id here.
 */
const spelled = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';

/** The objects that are read. */
export type ObjectName = 'Contact' | 'Lead';

const prefixes: Readonly<Record<string, ObjectName>> = { '003': 'Contact', '00Q': 'Lead' };

/** Returns the long form of an id; undefined when the text is no id of a record. */
export function longId(text: string): string | undefined {
  if (!/^[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?$/.test(text)) return undefined;
  const short = text.slice(0, 15);
  const long = short + [0, 5, 10].map((from) => casesOf(short.slice(from, from + 5))).join('');
  return text.length === 15 || text === long ? long : undefined;
}

/** Returns the object of a long id; undefined for other objects. */
export function objectOf(id: string): ObjectName | undefined {
  return prefixes[id.slice(0, 3)];
}

/** Encodes the case of five characters, one bit each: set for a capital. */
function casesOf(five: string): string {
  const bits = [...five].map((char, at) => (/[A-Z]/.test(char) ? 2 ** at : 0));
  return spelled.charAt(bits.reduce((sum, bit) => sum + bit, 0));
}
