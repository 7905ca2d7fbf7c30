import type { DomainCreateBody, DomainListQuery } from '../../platform/request-schemas.ts';
import { refuse, refuseBriefly, type ApiOutcome } from '../shared/api-answer.ts';
import { nameserversOf } from '../shared/dns-records.ts';
import type { Organization } from '../store/organization.ts';
import { viewDomain } from './answer-views.ts';
import type { Call } from './operation.ts';

/** Matches the characters that an id may contain. */
const identifier = /^[\w.~-]{1,255}$/;

/**
 * Handles POST /api/domain/v1/create. Creates a pending domain and returns the DNS records to set.
 */
export function createDomain(
  { domains, now }: Organization,
  { body }: Call<undefined, DomainCreateBody>,
): ApiOutcome {
  const existing = domains.byName(body.domain);
  if (existing) {
    const conflict = refuse(409, 'Domain already exists', {
      why: `The organization has the domain ${existing.domain} already, with the id "${existing.id}".`,
      fix: 'Use the domain that is there, or choose another name.',
    });
    return { ...conflict, about: { domainId: existing.id } };
  }
  const domain = domains.add(body, now());
  return {
    status: 201,
    body: { ...viewDomain(domain), event: 'domain.created' },
    about: { domainId: domain.id },
  };
}

/**
 * Handles POST /api/domain/v1/verify/{domain_id}. Whatever the domain's status was, it becomes
 * verifying. The specification does not show how the check ends; in the emulator, the console ends
 * it.
 */
export function verifyDomain(
  { domains, now }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  if (!identifier.test(id)) return refuseBriefly(400, 'Invalid domain format');
  const domain = domains.byId(id);
  if (domain === undefined) {
    return { ...refuseBriefly(404, 'Domain not found'), about: { domainId: id } };
  }
  domains.change(domain, { status: 'verifying', lastVerifiedAt: now() }, now());
  return { status: 200, body: { id, status: domain.status }, about: { domainId: id } };
}

/**
 * Handles GET /api/domain/v1/list. The specification does not show this endpoint; the emulator
 * treats it like the other lists.
 */
export function listDomains(
  { domains }: Organization,
  { query: { page = 1, limit = 20 } }: Call<DomainListQuery, undefined>,
): ApiOutcome {
  const listed = domains.listed();
  return {
    status: 200,
    body: {
      object: 'domain',
      domains: listed.page(page, limit).map(viewDomain),
      total: listed.size,
      page,
      limit,
      event: 'domain.list',
    },
  };
}

/** Handles GET /api/domain/v1/nameservers/{domain_id}. */
export function readNameservers(
  { domains }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const domain = domains.byId(id);
  if (domain === undefined) {
    return { ...refuseBriefly(404, 'DNS records not found'), about: { domainId: id } };
  }
  return {
    status: 200,
    body: {
      object: 'domain_nameservers',
      domainId: id,
      domain: domain.domain,
      ...nameserversOf(domain.domain),
      event: 'domain.nameservers',
    },
    about: { domainId: id },
  };
}
