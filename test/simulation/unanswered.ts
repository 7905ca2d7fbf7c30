/**
 * Requests that would make something, and whose outcome nobody knows: until the platform has been
 * read, none of them may be sent again (README, outcomes).
 */
import type { Answer, Request } from '../../src/model/exchange.ts';
import { asked } from './asked.ts';
import { Wrong } from './checkers.ts';
import type { Life } from './life.ts';

export interface Unanswered {
  /** A request leaves; what is given back is called with its answer, if one comes. */
  leave(request: Request, life: Life, found: (error: unknown) => void): (answer: Answer) => void;
}

interface Open {
  life: Life;
  /** The how-manieth request it was. */
  order: number;
}

export function createUnanswered(): Unanswered {
  const open = new Map<string, Open>();
  let order = 0;

  function clear(what: string, before: number): void {
    for (const [made, one] of open) {
      if (made.startsWith(what) && one.order < before) open.delete(made);
    }
  }

  return {
    leave(request, life, found) {
      order += 1;
      const mine = { life, order };
      const made = makes(request);
      if (made !== undefined) {
        if (open.has(made)) found(new Wrong(`sent again before anybody looked: ${made}`));
        open.set(made, mine);
      }
      return (answer) => {
        if (made === undefined) {
          const read = readBy(request);
          if (read !== undefined && answer.status < 300 && isReadable(answer))
            clear(read, mine.order);
        } else if (isFinal(made, answer)) open.delete(made);
      };
    },
  };
}

function makes(request: Request): string | undefined {
  if (request.method !== 'POST') return undefined;
  const { email, name } = asked(request);
  if (request.path.startsWith('/api/contacts/channel/') && email) return `contact ${email}`;
  return request.path === '/api/template/v1/create' ? `template ${name}` : undefined;
}

/** What a reading clears up, as the beginning of what was made. */
function readBy({ method, path }: Request): string | undefined {
  if (method !== 'GET') return undefined;
  const url = new URL(path, 'http://platform');
  if (url.pathname === '/api/contacts/list')
    return `contact ${url.searchParams.get('search') ?? ''}`;
  return url.pathname.startsWith('/api/template/') ? 'template ' : undefined;
}

export function isReadable({ headers }: Answer): boolean {
  return (headers['content-type'] ?? '').includes('json');
}

/** A 500 is the platform's own word on an enrolment; a template may have been made all the same. */
function isFinal(made: string, answer: Answer): boolean {
  const refused = answer.status >= 400 && answer.status < 500;
  return (
    refused ||
    (answer.status < 300 && isReadable(answer)) ||
    (answer.status === 500 && made.startsWith('contact '))
  );
}
