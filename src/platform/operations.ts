/**
 * The operations of the platform, one row each (specification, "Endpoints"). `route` names the
 * budget an operation draws from: the platform counts per route, however a request is made.
 */
import { resend, type Resend } from '../http/retry.ts';
import type { Method } from '../model/exchange.ts';

export interface Operation {
  route: string;
  method: Method;
  /** {name} stands for a path parameter. */
  path: string;
  resend: Resend;
}

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
} as const satisfies Record<string, Operation>;
