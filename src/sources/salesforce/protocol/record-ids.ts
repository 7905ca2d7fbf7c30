/**
 * Handles record ids: 15 characters in which case matters, or the same with three more that encode
 * the case. Both forms name the same record; this source uses the long form.
 */
const spelled = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';

export type ObjectName = 'Contact' | 'Lead';

const prefixes: Readonly<Record<string, ObjectName>> = { '003': 'Contact', '00Q': 'Lead' };

/** Returns the long form of an id, or undefined if the text is not a record id. */
export function longId(text: string): string | undefined {
  if (!/^[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?$/.test(text)) return undefined;
  const short = text.slice(0, 15);
  // The case of five characters is one more, one bit each; a set bit means a capital.
  const cases = [0, 5, 10].map((from) => {
    const bits = short
      .slice(from, from + 5)
      .split('')
      .map((char, at) => (/[A-Z]/.test(char) ? 2 ** at : 0));
    return spelled.charAt(bits.reduce((sum, bit) => sum + bit, 0));
  });
  const long = short + cases.join('');
  return text.length === 15 || text === long ? long : undefined;
}

/** Returns the object of a long id, or undefined if this source does not read that object. */
export function objectOf(id: string): ObjectName | undefined {
  return prefixes[id.slice(0, 3)];
}
