/** The operations of the platform ("Endpoints"). `route` names the budget of an operation. */
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

const operation = (route: string, method: Method, path: string, rule: Resend): Operation => ({
  route,
  method,
  path,
  resend: rule,
});

const { freely, repeatable, afterOwnFailure, never } = resend;

const enrolment = '/api/contacts/channel/{channel_id}';

/** Lists every operation of the API ("Endpoints") by the name that the client gives it. */
export const operations = {
  listContacts: operation('contacts.list', 'GET', '/api/contacts/list', freely),
  retrieveContact: operation(
    'contacts.retrieve',
    'GET',
    '/api/contacts/retrieve/{contact_id}',
    freely,
  ),
  deleteContact: operation('contacts.delete', 'DELETE', '/api/contacts/{contact_id}', repeatable),
  enrolById: operation('contacts.enrol', 'POST', enrolment, repeatable),
  enrolByEmail: operation('contacts.enrol', 'POST', enrolment, afterOwnFailure),
  listTemplates: operation('templates.list', 'GET', '/api/template/v1/list', freely),
  createTemplate: operation('templates.create', 'POST', '/api/template/v1/create', never),
  updateTemplate: operation('templates.update', 'PUT', '/api/template/v1/{id}', repeatable),
  testTemplate: operation('templates.test', 'POST', '/api/template/v1/{id}/test', never),
  listDomains: operation('domains.list', 'GET', '/api/domain/v1/list', freely),
  createDomain: operation('domains.create', 'POST', '/api/domain/v1/create', never),
  verifyDomain: operation(
    'domains.verify',
    'POST',
    '/api/domain/v1/verify/{domain_id}',
    repeatable,
  ),
  readNameservers: {
    ...operation('domains.nameservers', 'GET', '/api/domain/v1/nameservers/{domain_id}', freely),
    session: true,
  },
  enableApiKey: operation('keys.enable', 'POST', '/api/api-key/v1/enable/{api_key_id}', repeatable),
} as const satisfies Record<string, Operation>;
