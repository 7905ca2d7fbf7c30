/** Sending domains (specification, "Endpoints", Domains). */
import { Invalid } from '../domain/errors.ts';
import {
  domain,
  domainList,
  nameservers,
  verification,
  type Domain,
  type DomainList,
  type Nameservers,
  type Verification,
} from './answer-schemas.ts';
import type { Caller, CallOptions } from './api-call.ts';
import { operations } from './operations.ts';
import { paged, type Paged } from './paging.ts';
import type { DomainCreateBody } from './request-schemas.ts';

/** Somebody signed in to the dashboard: the API key is not accepted (Authentication 6). */
interface Session {
  /** name=value as the browser sends it, the name ending in .session_token; others are left out. */
  sessionCookie: string;
}

export interface Domains extends Paged<object, DomainList, Domain> {
  /** GET /api/domain/v1/list: one page. Its shape is not specified, and read loosely. */
  list(query: { page: number; limit: number }, options?: CallOptions): Promise<DomainList>;
  /**
   * POST /api/domain/v1/create; the answer names the DNS records to make. Rejected with 409 when
   * the domain exists. Never sent twice: any failure but a refusal is unknown, and the list tells.
   */
  create(body: DomainCreateBody, options?: CallOptions): Promise<Domain>;
  /**
   * POST /api/domain/v1/verify/{id} has the DNS records looked at; `status` is an open word. Asked
   * again it goes on, so that it may be repeated. Rejected with 400, 403 or 404.
   */
  verify(id: string, options?: CallOptions): Promise<Verification>;
  /**
   * GET /api/domain/v1/nameservers/{id}, for a session. Rejected with 401 for a cookie the platform
   * does not know, 403 for somebody without an organization, 404 without DNS records; Invalid for a
   * cookie that is none.
   */
  nameservers(id: string, options: Session & CallOptions): Promise<Nameservers>;
}

export function createDomains({ call }: Caller): Domains {
  const list: Domains['list'] = async ({ page, limit }, options) => {
    const operation = operations.listDomains;
    const query = { page, limit };
    const listed = await call(
      { operation, query, schema: domainList, expected: 'a list of domains' },
      options,
    );
    return listed.value;
  };
  return {
    ...paged({ list, rowsOf: (page) => page.domains }),
    list,
    async create(body, options) {
      const operation = operations.createDomain;
      const expected = 'a domain';
      return (await call({ operation, body, schema: domain, expected }, options)).value;
    },
    async verify(id, options) {
      const operation = operations.verifyDomain;
      const expected = 'the answer to a verification';
      return (await call({ operation, id, schema: verification, expected }, options)).value;
    },
    async nameservers(id, { sessionCookie, ...options }) {
      const operation = operations.readNameservers;
      const cookie = sessionToken(sessionCookie);
      const expected = 'a list of nameservers';
      return (await call({ operation, id, cookie, schema: nameservers, expected }, options)).value;
    },
  };
}

/** The one cookie that is asked for, of all that a browser may have copied along. */
function sessionToken(text: string): string {
  const token = text
    .replace(/^cookie:/i, '')
    .split(';')
    .map((cookie) => cookie.trim())
    .find((cookie) => /^[^\s=,]+\.session_token=[\x21-\x7e]+$/.test(cookie));
  if (token === undefined) {
    throw new Invalid(
      'the session cookie is none: copy name=value, its name ends in .session_token',
    );
  }
  return token;
}
