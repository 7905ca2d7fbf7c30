import type { Clock, Random } from '../../../src/domain/clock.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { createPlatform, type Platform } from '../../../src/platform/api-client.ts';
import type { AbsenceRules } from '../../../src/records/contact/consent/absent-people.ts';
import type { ConsentPolicy } from '../../../src/records/contact/consent/rules.ts';
import { connectContacts } from '../../../src/records/contact/connect-contacts.ts';
import type { ContactFields } from '../../../src/records/contact/observe/desired-contact.ts';
import type { TemplatePolicy } from '../../../src/records/template/template-decision.ts';
import { connectTemplates } from '../../../src/records/template/connect-templates.ts';

// People and templates with their client, as every stage of the tests has them.

/** What a test does not say is as in a configuration without a word about it. */
export interface TypeOptions {
  send: Send;
  clock: Clock;
  random: Random;
  apiKey?: string;
  fields: ContactFields;
  policy?: Partial<ConsentPolicy> & Partial<Omit<TemplatePolicy, 'tests'>>;
  absence?: Partial<AbsenceRules> | undefined;
  /** Who gets a test of changed templates. */
  testTo?: readonly string[] | undefined;
  /** What stands in the place of the client. */
  platformAs?: ((platform: Platform) => Platform) | undefined;
}

const patience = { absentReadings: 2, absentForMs: 20 * 3_600_000, deleteAfterMs: 0 };

export function assembleTypes(options: TypeOptions) {
  const { send, clock, random, apiKey = 'key', fields, policy = {}, absence } = options;
  const { absent = 'keep', missing = 'respect', optIns = 'on', resubscribe = 'never' } = policy;
  const { templates = 'keep', absentTemplates = 'keep' } = policy;
  const gate = createGate({ clock, random });
  const client = createPlatform({ send, gate, clock, random, apiKey });
  const platform = options.platformAs?.(client) ?? client;
  return {
    gate,
    platform,
    contact: connectContacts({
      fields,
      policy: { absent, missing, optIns, resubscribe },
      absence: { deletes: 'off', ...patience, ...absence },
      platform: platform.contacts,
      times: () => ({ at: clock.now(), platformAt: gate.platformNow() ?? null }),
    }),
    template: connectTemplates({
      policy: { templates, absentTemplates },
      platform: platform.templates,
      testTo: options.testTo,
    }),
  };
}
