import { z } from 'zod';
import type { Answer, Request } from '../../../src/domain/exchange.ts';
import { isReadable } from './unanswered.ts';
import { keyOf } from '../../support/engine/sample-people.ts';

const contact = z.object({ id: z.string(), email: z.string() });
const listed = z.object({ contacts: z.array(contact) });

/**
 * The contacts that an answer shows, each with its address: by its page, or by its
 * id; a search is for one address, and shows more than that by chance. A list of one contact is
 * asked for its date or its total, and nobody reads whose it is.
 */
export function shownBy({ method, path }: Request, answer: Answer): { id: string; key: string }[] {
  const { pathname, searchParams } = new URL(path, 'http://platform');
  const isReading = method === 'GET' && pathname.startsWith('/api/contacts/');
  if (!isReading || answer.status >= 300 || !isReadable(answer)) return [];
  const body: unknown = JSON.parse(answer.body);
  const contacts = pathname.endsWith('/list') ? listed.parse(body).contacts : [contact.parse(body)];
  const search = searchParams.get('search');
  if (search === null && searchParams.get('limit') === '1') return [];
  return contacts
    .map(({ id, email }) => ({ id, key: keyOf(email) }))
    .filter(({ key }) => search === null || key === search);
}
