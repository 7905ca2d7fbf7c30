import {
  contactListQuery,
  templateCreateBody,
  templateListQuery,
  templateUpdateBody,
  testSendBody,
} from '../../platform/request.ts';
import { deleteContact, listContacts, retrieveContact } from './contacts.ts';
import { enrolContact, enrolment } from './enrol.ts';
import { operation, type Operation } from './operation.ts';
import { json, nothing, query } from './read.ts';
import { createTemplate, listTemplates, updateTemplate } from './templates.ts';
import { testTemplate } from './test-send.ts';

/** Every operation of the API ("Endpoints"). The first row that fits has it. */
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
];
