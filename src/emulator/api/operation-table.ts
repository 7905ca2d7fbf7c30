import {
  contactListQuery,
  domainCreateBody,
  domainListQuery,
  templateCreateBody,
  templateListQuery,
  templateUpdateBody,
  testSendBody,
} from '../../platform/request-schemas.ts';
import {
  deleteContact,
  enrolContact,
  enrolment,
  listContacts,
  retrieveContact,
} from './contacts.ts';
import { createDomain, listDomains, readNameservers, verifyDomain } from './domains.ts';
import { type Call, operation, type Operation } from './operation.ts';
import { json, nothing, query } from './request-parsing.ts';
import { createTemplate, listTemplates, testTemplate, updateTemplate } from './templates.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Organization } from '../store/organization.ts';
import { viewKey } from './answer-views.ts';

/** Lists every operation of the API ("Endpoints"). The first matching row handles a request. */
export const operations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/api/contacts/list',
    route: 'contacts.list',
    query: query(contactListQuery),
    body: nothing,
    run: listContacts,
  }),
  operation({
    method: 'GET',
    path: '/api/contacts/retrieve/{contact_id}',
    route: 'contacts.retrieve',
    query: nothing,
    body: nothing,
    run: retrieveContact,
  }),
  operation({
    method: 'DELETE',
    path: '/api/contacts/{contact_id}',
    route: 'contacts.delete',
    query: nothing,
    body: nothing,
    run: deleteContact,
  }),
  operation({
    method: 'POST',
    path: '/api/contacts/channel/{channel_id}',
    route: 'contacts.enrol',
    query: nothing,
    body: json(enrolment),
    run: enrolContact,
  }),
  operation({
    method: 'GET',
    path: '/api/template/v1/list',
    route: 'templates.list',
    query: query(templateListQuery),
    body: nothing,
    run: listTemplates,
  }),
  operation({
    method: 'POST',
    path: '/api/template/v1/create',
    route: 'templates.create',
    query: nothing,
    body: json(templateCreateBody),
    run: createTemplate,
  }),
  operation({
    method: 'PUT',
    path: '/api/template/v1/{id}',
    route: 'templates.update',
    query: nothing,
    body: json(templateUpdateBody),
    run: updateTemplate,
  }),
  operation({
    method: 'POST',
    path: '/api/template/v1/{id}/test',
    route: 'templates.test',
    sends: true,
    query: nothing,
    body: json(testSendBody),
    run: testTemplate,
  }),
  operation({
    method: 'POST',
    path: '/api/domain/v1/create',
    route: 'domains.create',
    query: nothing,
    body: json(domainCreateBody),
    run: createDomain,
  }),
  operation({
    method: 'POST',
    path: '/api/domain/v1/verify/{domain_id}',
    route: 'domains.verify',
    brief: true,
    query: nothing,
    body: nothing,
    run: verifyDomain,
  }),
  operation({
    method: 'GET',
    path: '/api/domain/v1/nameservers/{domain_id}',
    route: 'domains.nameservers',
    session: true,
    brief: true,
    query: nothing,
    body: nothing,
    run: readNameservers,
  }),
  operation({
    method: 'GET',
    path: '/api/domain/v1/list',
    route: 'domains.list',
    query: query(domainListQuery),
    body: nothing,
    run: listDomains,
  }),
  operation({
    method: 'POST',
    path: '/api/api-key/v1/enable/{api_key_id}',
    route: 'keys.enable',
    query: nothing,
    body: nothing,
    run: enableKey,
  }),
];

/**
 * Handles POST /api/api-key/v1/enable/{api_key_id}. An enabled key stays enabled. A revoked key
 * counts as unknown.
 */
function enableKey({ keys, now }: Organization, { id }: Call<undefined, undefined>): ApiOutcome {
  const key = keys.byId(id);
  if (key === undefined || key.revoked) {
    const refusal = refuse(404, 'API key not found', {
      why: `The organization has no API key with the id "${id}".`,
      fix: "Look up the id of the key in the organization's dashboard.",
    });
    return { ...refusal, about: { keyId: id } };
  }
  if (!key.enabled) keys.change(key, { enabled: true }, now());
  return { status: 200, body: viewKey(key), about: { keyId: id } };
}
