/**
 * The platform as everybody here sees it: every operation of the specification, typed. Nothing else
 * writes to the platform. 429s are waited out and failures retried below this file.
 *
 * Every method throws Rejected (4xx, in the platform's words), Unavailable (`acted` says whether a
 * write may have had its effect), RateLimited, Invalid for an id that cannot be one, and the
 * signal's reason when aborted before anything was written.
 */
import { createApiKeys, type ApiKeys } from './api-keys.ts';
import { createCaller, type CallerOptions } from './api-call.ts';
import { createContacts, type Contacts } from './contacts.ts';
import { createDomains, type Domains } from './domains.ts';
import { createTemplates, type Templates } from './templates.ts';

export interface Platform {
  contacts: Contacts;
  templates: Templates;
  domains: Domains;
  apiKeys: ApiKeys;
}

/** Over any `send`: a network, or a platform in the same process. */
export function createPlatform(options: CallerOptions): Platform {
  const caller = createCaller(options);
  return {
    contacts: createContacts(caller),
    templates: createTemplates(caller),
    domains: createDomains(caller),
    apiKeys: createApiKeys(caller),
  };
}
