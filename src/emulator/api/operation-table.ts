import {
  contactListQuery,
  domainCreateBody,
  domainListQuery,
  templateCreateBody,
  templateListQuery,
  templateUpdateBody,
  testSendBody,
} from '../../platform/request-schemas.ts';
import { deleteContact, listContacts, retrieveContact } from './contacts.ts';
import { createDomain, listDomains, readNameservers, verifyDomain } from './domains.ts';
import { enrolContact, enrolment } from './enrol.ts';
import { enableKey } from './keys.ts';
import { operation, type Operation } from './operation.ts';
import { json, nothing, query } from './request-parsing.ts';
import { createTemplate, listTemplates, updateTemplate } from './templates.ts';
import { testTemplate } from './test-send.ts';

/** Every operation of the API ("Endpoints"). The first row that fits answers. */
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
