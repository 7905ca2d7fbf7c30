/**
 * Lists the operations of the platform, one row each (specification, "Endpoints"). `route` names
 * the budget of an operation, because the platform counts requests per route.
 */
import { resend, type Resend } from '../http/retry.ts';
import type { Method } from '../domain/exchange.ts';

/** An operation of the platform's API: how it is requested, and when it may be resent. */
export interface Operation {
  route: string;
  method: Method;
  /** {name} stands for a path parameter. */
  path: string;
  resend: Resend;
  /** Set if it needs the cookie of a signed-in user and accepts no API key (Authentication 6). */
  session?: true;
}

/** Lists every operation of the API ("Endpoints") by the name that the client gives it. */
export const operations = {
  listContacts: {
    route: 'contacts.list',
    method: 'GET',
    path: '/api/contacts/list',
    resend: resend.freely,
  },
  retrieveContact: {
    route: 'contacts.retrieve',
    method: 'GET',
    path: '/api/contacts/retrieve/{contact_id}',
    resend: resend.freely,
  },
  deleteContact: {
    route: 'contacts.delete',
    method: 'DELETE',
    path: '/api/contacts/{contact_id}',
    resend: resend.repeatable,
  },
  enrolById: {
    route: 'contacts.enrol',
    method: 'POST',
    path: '/api/contacts/channel/{channel_id}',
    resend: resend.repeatable,
  },
  enrolByEmail: {
    route: 'contacts.enrol',
    method: 'POST',
    path: '/api/contacts/channel/{channel_id}',
    resend: resend.afterOwnFailure,
  },
  listTemplates: {
    route: 'templates.list',
    method: 'GET',
    path: '/api/template/v1/list',
    resend: resend.freely,
  },
  createTemplate: {
    route: 'templates.create',
    method: 'POST',
    path: '/api/template/v1/create',
    resend: resend.never,
  },
  updateTemplate: {
    route: 'templates.update',
    method: 'PUT',
    path: '/api/template/v1/{id}',
    resend: resend.repeatable,
  },
  testTemplate: {
    route: 'templates.test',
    method: 'POST',
    path: '/api/template/v1/{id}/test',
    resend: resend.never,
  },
  listDomains: {
    route: 'domains.list',
    method: 'GET',
    path: '/api/domain/v1/list',
    resend: resend.freely,
  },
  createDomain: {
    route: 'domains.create',
    method: 'POST',
    path: '/api/domain/v1/create',
    resend: resend.never,
  },
  verifyDomain: {
    route: 'domains.verify',
    method: 'POST',
    path: '/api/domain/v1/verify/{domain_id}',
    resend: resend.repeatable,
  },
  readNameservers: {
    route: 'domains.nameservers',
    method: 'GET',
    path: '/api/domain/v1/nameservers/{domain_id}',
    resend: resend.freely,
    session: true,
  },
  enableApiKey: {
    route: 'keys.enable',
    method: 'POST',
    path: '/api/api-key/v1/enable/{api_key_id}',
    resend: resend.repeatable,
  },
} as const satisfies Record<string, Operation>;
