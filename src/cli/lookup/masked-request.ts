/**
 * Shows logged requests without what identifies people: an address is replaced by the name of the
 * person (#9cc428f416d4), and so are the person's names and properties.
 */
import type { LoggedRequest } from '../../request-log/read-log.ts';
import type { Names } from './person-names.ts';

/** The texts of a request as they may be shown; null for a text that was not kept. */
export interface ShownTexts {
  path: string;
  person: string | null;
  request: string | null;
  answer: string | null;
  failure: string | null;
}

/** The parts of a contact that say nothing about who the person is. */
const shownOfContact: ReadonlySet<string> = new Set([
  'object',
  'id',
  'email',
  'contact_id',
  'status',
  'subscription',
  'suppressionReason',
  'suppressedAt',
  'channels',
  'groups',
  'createdAt',
  'updatedAt',
]);

/** Returns the texts of a request. With `isPlain`, nothing is masked. */
export function shownTexts(one: LoggedRequest, names: Names, isPlain: boolean): ShownTexts {
  const { path, person, request, answer, failure } = one;
  if (isPlain) return { path, person, request, answer, failure };
  const name = (address: string): string =>
    names({ kind: 'contact', key: address.trim().toLowerCase() });
  const words: Words = { name, person, unknown: person === null ? '…' : name(person) };
  const body = (text: string | null) => text && masked(text, words);
  return {
    path: maskedPath(path, words),
    person: person && name(person),
    request: body(request),
    answer: body(answer),
    failure: failure && maskedText(failure, words),
  };
}

interface Words {
  name(address: string): string;
  person: string | null;
  /** Stands for a text about the person. */
  unknown: string;
}

/** Masks a body. Of JSON that was cut off, nothing is shown, because its parts are not known. */
function masked(text: string, words: Words): string {
  try {
    return JSON.stringify(maskedValue(JSON.parse(text), words));
  } catch {
    return /^\s*[{[]/.test(text) ? '… (too long to be masked)' : maskedText(text, words);
  }
}

function maskedValue(value: unknown, words: Words): unknown {
  if (typeof value === 'string') return maskedText(value, words);
  if (Array.isArray(value)) return value.map((one) => maskedValue(one, words));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value);
  const contact = fields.find(([field, of]) => field === 'email' && typeof of === 'string');
  const unknown = contact ? words.name(String(contact[1])) : words.unknown;
  return Object.fromEntries(
    fields.map(([field, of]) => {
      const isShown = !contact || shownOfContact.has(field) || of === null;
      return [field, isShown ? maskedValue(of, words) : unknown];
    }),
  );
}

function maskedText(text: string, { name, person }: Words): string {
  const known = person === null || person === '' ? text : text.replaceAll(person, name(person));
  return known.replace(/[^\s@‹›"'<>()]{1,64}@[^\s@‹›"'<>()]{1,255}/gu, (found) => {
    const address = found.replace(/[.,;:!?]+$/, '');
    return name(address) + found.slice(address.length);
  });
}

function maskedPath(path: string, words: Words): string {
  const [place = '', query] = path.split('?');
  if (query === undefined) return path;
  const fields = [...new URLSearchParams(query)];
  return `${place}?${fields.map(([field, of]) => `${field}=${maskedText(of, words)}`).join('&')}`;
}
