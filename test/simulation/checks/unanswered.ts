/**
 * What left and had no usable answer. An enrolment of that kind may have been done, and nobody has
 * heard of it; what would make something is not sent again until the platform has been read
 * (docs/decisions/journal-and-speed.md).
 */
import { keyOf } from '../../support/engine/sample-people.ts';
import type { Answer, Request } from '../../../src/domain/exchange.ts';
import { asked } from './asked.ts';
import type { Judge } from './rules.ts';

export interface Unanswered {
  /**
   * A request leaves, an enrolment (address, channel, subscription) or another; what is given back
   * is called with its answer, if one comes.
   */
  leave(request: Request, enrols: string | undefined, judge: Judge): (answer: Answer) => void;
  /** Whether this enrolment may have been done. */
  has(enrolment: string): boolean;
  /** The same of one before this, which is under way. */
  hadBefore(enrolment: string): boolean;
  /** It was answered, and nobody lived to write that down. */
  add(enrolment: string): void;
}

export function createUnanswered(): Unanswered {
  /** How many of each. */
  const enrolments = new Map<string, number>();
  const count = (enrolment: string): void =>
    void enrolments.set(enrolment, (enrolments.get(enrolment) ?? 0) + 1);
  /** What would be made, and the how-manieth request it was. */
  const makings = new Map<string, number>();
  let order = 0;

  function clear(what: string, before: number): void {
    for (const [made, at] of makings) {
      if (made.startsWith(what) && at < before) makings.delete(made);
    }
  }

  function leaveMaking(request: Request, judge: Judge): (answer: Answer) => void {
    order += 1;
    const at = order;
    const made = makes(request);
    if (made !== undefined) {
      const wrong = makings.has(made) && `sent again before anybody looked: ${made}`;
      judge('an unanswered change is not sent again before a look', wrong);
      makings.set(made, at);
    }
    return (answer) => {
      if (made === undefined) {
        const read = readBy(request);
        if (read !== undefined && answer.status < 300 && isReadable(answer)) clear(read, at);
      } else if (isFinal(made, answer)) makings.delete(made);
    };
  }

  return {
    leave(request, enrols, judge) {
      const settle = leaveMaking(request, judge);
      if (enrols === undefined) return settle;
      // What an earlier one has done, no answer to this one can tell.
      const isFirst = !enrolments.has(enrols);
      count(enrols);
      return (answer) => {
        settle(answer);
        if (isFirst && answer.status < 500 && isReadable(answer)) enrolments.delete(enrols);
      };
    },
    has: (enrolment) => enrolments.has(enrolment),
    hadBefore: (enrolment) => (enrolments.get(enrolment) ?? 0) > 1,
    add: count,
  };
}

function makes(request: Request): string | undefined {
  if (request.method !== 'POST') return undefined;
  const { email, name } = asked(request);
  if (request.path.startsWith('/api/contacts/channel/') && email) return `contact ${keyOf(email)}`;
  return request.path === '/api/template/v1/create' ? `template ${name}` : undefined;
}

/** What a reading clears up, as the beginning of what was made. */
function readBy({ method, path }: Request): string | undefined {
  if (method !== 'GET') return undefined;
  const url = new URL(path, 'http://platform');
  if (url.pathname === '/api/contacts/list')
    return `contact ${keyOf(url.searchParams.get('search') ?? '')}`;
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
