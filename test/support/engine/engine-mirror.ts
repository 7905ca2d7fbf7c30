/** One mirror of people and templates, put together for a platform in the same process. */
import { byGuard } from '../../../src/domain/guard-classes.ts';
import { createGate } from '../../../src/rate-limit/request-gate.ts';
import type { AbsenceRules } from '../../../src/records/contact/consent/our-contacts.ts';
import { contactType } from '../../../src/records/contact/contact-type.ts';
import { templateType } from '../../../src/records/template/template-type.ts';
import type { Clock, Random } from '../../../src/domain/clock.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import type { Guards } from '../../../src/engine/report/guard-rules.ts';
import { createPlatform, type Platform } from '../../../src/platform/api-client.ts';
import type { DoNotContactList } from '../../../src/do-not-contact/contact-list.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import type { WriteBack } from '../../../src/sources/write-back.ts';
import type { Source } from '../../../src/sources/source.ts';
import { createPersonLocks, type PersonLocks } from '../../../src/engine/context/person-locks.ts';
import type { Mirror } from '../../../src/engine/context/mirror-context.ts';

export const channels = ['ch_news', 'ch_product'];

/**
 * As a configuration without a word about them has them, but that everybody may be opted out, and
 * every template changed: few tests are about that.
 */
export const limits: Guards = {
  ...byGuard((_, { defaults: { percent, floor } }) => ({ percent, floor })),
  opt_out: { percent: 100, floor: 20, holdForMs: 72 * 3_600_000 },
  template: { percent: 100, floor: 3 },
};
export const patience = { absentReadings: 2, absentForMs: 20 * 3_600_000, deleteAfterMs: 0 };

export interface Policy {
  absent?: 'keep' | 'opt_out';
  deletes?: 'off' | 'created' | 'owned';
  missing?: 'respect' | 'recreate';
  resubscribe?: 'never' | 'newer';
  templates?: 'keep' | 'overwrite';
  absentTemplates?: 'keep' | 'archive';
  /** Of a channel, the one it took over from. */
  replaces?: Record<string, string>;
}

export interface Parts {
  send: Send;
  snapshot: Snapshot;
  ledger: DoNotContactList;
  audit?: Mirror['audit'];
  clock: Clock;
  random: Random;
  apiKey?: string;
  policy: Policy;
  guards?: Partial<Guards>;
  absence?: Partial<AbsenceRules>;
  /** How the contacts are read. */
  manner?: string;
  rules?: Mirror['rules'];
  windows?: Mirror['windows'];
  canary?: Mirror['canary'];
  approvers?: Mirror['approvers'];
  /** Who gets a test of changed templates. */
  testTo?: readonly string[] | undefined;
  timezone?: string;
  contacts: Source;
  templates: Source;
  pageSizes?: Mirror['pageSizes'];
  beside?: PersonLocks;
  returns?: WriteBack;
  /** What the mirror has in the place of its client. */
  platformAs?(platform: Platform): Platform;
}

export function mirrorOf(parts: Parts): Mirror {
  const { send, snapshot, ledger: doNotContact, clock, random, policy, apiKey = 'key' } = parts;
  const { pageSizes = [100, 83] } = parts;
  const gate = createGate({ clock, random });
  const { platformAs = (one: Platform) => one } = parts;
  const platform = platformAs(createPlatform({ send, gate, clock, random, apiKey }));
  const fields = {
    id: 'id',
    email: 'email',
    deleted: 'deleted',
    unsubscribed: 'unsubscribed',
    consentAt: 'consent_at',
    channels: channels.map((id) => ({ id, subscription: id, replaces: policy.replaces?.[id] })),
  };
  const { missing = 'respect', resubscribe = 'never', absent = 'keep', deletes = 'off' } = policy;
  const { templates = 'keep', absentTemplates = 'keep' } = policy;
  const contact = contactType({
    fields,
    policy: { absent, missing, resubscribe, optIns: 'on' },
    absence: { ...patience, deletes, ...parts.absence },
    platform: platform.contacts,
    now: clock.now,
  });
  const template = templateType({
    policy: { templates, absentTemplates },
    platform: platform.templates,
    testTo: parts.testTo,
  });
  return {
    name: 'test',
    parts: [
      { type: contact, source: parts.contacts, manner: parts.manner ?? 'as it is' },
      { type: template, source: parts.templates },
    ],
    returns: parts.returns,
    snapshot,
    account: { url: 'https://platform.test', apiKey, platform },
    doNotContact,
    audit: parts.audit,
    locks: parts.beside ?? createPersonLocks(),
    notes: [],
    clock,
    random,
    timeoutMs: 10_000,
    pageSizes,
    keepMs: 90 * 86_400_000,
    guards: { ...limits, ...parts.guards },
    rules: parts.rules,
    windows: parts.windows,
    canary: parts.canary,
    approvers: parts.approvers,
    timezone: parts.timezone,
    reserve: 0,
    requests: gate.counts,
    limits: gate.limits,
    platformNow: gate.platformNow,
  };
}
