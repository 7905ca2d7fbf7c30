/**
 * Shortens the text of a request or a response to what may be kept. Of a contact, only the address
 * and what the platform does with it are kept: no name and no other attribute of the person.
 */

/** The fields of a contact that are kept. */
const keptOfContact: ReadonlySet<string> = new Set([
  'object',
  'id',
  'email',
  'contact_id',
  'status',
  'subscription',
  'suppressionReason',
  'suppressedAt',
  'channels',
  'createdAt',
  'updatedAt',
  'event',
]);

/** The most characters that are kept. */
const longest = 4_096;
/** The longest text of a contact that is read. Of a longer one, nothing is kept. */
const longestRead = 65_536;

/**
 * Returns the part of a text that is kept, or null if there is none. `hides` are texts that are
 * never kept.
 */
export function keptText(
  text: string | undefined,
  { route, hides }: { route: string; hides: readonly string[] },
): string | null {
  if (text === undefined || text === '') return null;
  const whole = route.startsWith('contacts.') ? withoutAttributes(text) : text;
  return cut(hidden(whole.slice(0, longest * 2), hides));
}

/** Replaces what is never kept. */
export function hidden(text: string, hides: readonly string[]): string {
  return hides.reduce((all, one) => (one === '' ? all : all.replaceAll(one, '‹key›')), text);
}

/** Cuts a long text before a word, so that no part of an address is left without its rest. */
function cut(text: string): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest).replace(/[^\s",:;<>(){}[\]]{0,320}$/, '')}…`;
}

function withoutAttributes(text: string): string {
  if (!/^\s*[{[]/.test(text)) return text;
  if (text.length > longestRead) return '…';
  try {
    return JSON.stringify(keptOf(JSON.parse(text)));
  } catch {
    return '…';
  }
}

function keptOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(keptOf);
  if (typeof value !== 'object' || value === null) return value;
  const isContact = 'email' in value;
  const kept: Record<string, unknown> = {};
  for (const [field, of] of Object.entries(value)) {
    if (!isContact || keptOfContact.has(field)) kept[field] = keptOf(of);
  }
  return kept;
}
