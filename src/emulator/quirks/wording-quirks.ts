import { refuse } from '../shared/api-answer.ts';
import { isRecord, withBody, withStatus, type Quirk } from './quirk.ts';

/**
 * Responds with this status to a request that does not match the schemas. Malformed JSON still gets
 * 400.
 */
export function validationStatus(status: string): Quirk {
  return {
    turns: (reply) => (reply.outcome.misfit ? withStatus(reply, Number(status)) : reply),
  };
}

/** Reduces error responses to their message. */
export function errorMessageOnly(): Quirk {
  return {
    turns(reply) {
      const { status, body } = reply.outcome;
      if (status < 400 || !isRecord(body)) return reply;
      return withBody(reply, { message: body['message'] });
    },
  };
}

/** Returns ids such as evt_00000001 in `event`, instead of names. */
export function eventIds(): Quirk {
  let count = 0;
  const renamed = (body: Record<string, unknown>): Record<string, unknown> => {
    if (typeof body['event'] !== 'string') return body;
    count += 1;
    return { ...body, event: `evt_${count.toString(36).padStart(8, '0')}` };
  };
  return {
    restart: () => void (count = 0),
    turns(reply) {
      const { body } = reply.outcome;
      if (!isRecord(body)) return reply;
      const { contact } = body;
      const inner = isRecord(contact) ? { contact: renamed(contact) } : {};
      return withBody(reply, { ...renamed(body), ...inner });
    },
  };
}

/** Responds with this status to a request that has no User-Agent. */
export function emptyUserAgent(status: string): Quirk {
  return {
    answers({ headers }) {
      if (headers['user-agent']?.trim()) return undefined;
      return refuse(Number(status), 'Missing User-Agent', {
        why: 'The request has no User-Agent header, or an empty one.',
        fix: 'Send a User-Agent that names your program.',
      });
    },
  };
}

/** Shows the status pending as start-verify. */
export function domainStatuses(): Quirk {
  const renamed = (value: unknown): unknown =>
    isRecord(value) && value['object'] === 'domain' && value['status'] === 'pending'
      ? { ...value, status: 'start-verify' }
      : value;
  return {
    turns(reply) {
      const { body } = reply.outcome;
      if (!isRecord(body)) return reply;
      const { domains } = body;
      const inner = Array.isArray(domains) ? { domains: domains.map(renamed) } : {};
      return withBody(reply, Object.assign({}, renamed(body), inner));
    },
  };
}
