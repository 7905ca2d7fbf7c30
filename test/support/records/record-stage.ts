/** Both kinds over the whole emulator, through the real client: no socket, no wall clock. */
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { createGate } from '../../../src/rate-limit/request-gate.ts';
import { contactType } from '../../../src/records/contact/contact-type.ts';
import type { AbsenceRules } from '../../../src/records/contact/consent/our-contacts.ts';
import type { ContactFields } from '../../../src/records/contact/observe/desired-contact.ts';
import type { ConsentPolicy } from '../../../src/records/contact/consent/rules.ts';
import { templateType } from '../../../src/records/template/template-type.ts';
import type { TemplatePolicy } from '../../../src/records/template/template-decision.ts';
import type { RecordType, SendOutcome, States } from '../../../src/records/record-type.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Answer, Send } from '../../../src/domain/exchange.ts';
import type { RecordedRow } from '../../../src/domain/record.ts';
import { createPlatform } from '../../../src/platform/api-client.ts';
import { virtualClock } from '../clock.ts';

export const NOON = Date.UTC(2026, 10, 20, 12);
export const LATER = NOON + 3_600_000;
export const NEWS = 'ch_news';
export const PRODUCT = 'ch_product';

export const fields = {
  id: 'id',
  email: 'email',
  deleted: 'archived',
  unsubscribed: 'do_not_mail',
  channels: [
    { id: NEWS, subscription: 'newsletter' },
    { id: PRODUCT, subscription: 'product' },
  ],
};

export interface Rules {
  contacts?: Partial<ConsentPolicy>;
  absence?: Partial<AbsenceRules>;
  templates?: Partial<TemplatePolicy>;
  /** Of a channel, the one it took over from. */
  replaces?: Record<string, string>;
  protect?: ContactFields['protect'];
}

export interface Fault {
  /** Begins with the method, then part of the path: "POST /api/contacts/channel". */
  on: string;
  /** Whether the platform does what it was asked, before the answer goes wrong. */
  commits: boolean;
  /** What comes instead of its answer; 'lost' is a time-out. */
  gives: 'lost' | { status: number; body: unknown };
  /** How often; default for ever. */
  times?: number;
}

/** An emulator with two channels, both kinds connected to it, and a wire that can be cut. */
export function open({ contacts, absence, templates, replaces = {}, protect }: Rules = {}) {
  const clock = virtualClock(NOON);
  const random = seeded(1);
  const emulator = createEmulator({
    clock,
    random,
    apiKey: 'key',
    channels: [NEWS, PRODUCT, ...Object.values(replaces)].map((id) => ({ id, name: id })),
    limits: ['*=1000000/1'],
  });
  const faults: Required<Fault>[] = [];
  const asked: string[] = [];
  const send: Send = async (request) => {
    const line = `${request.method} ${request.path}`;
    asked.push(line);
    const fault = faults.find(({ on, times }) => times > 0 && line.startsWith(on));
    if (!fault) return emulator.handle(request);
    fault.times -= 1;
    if (fault.commits) emulator.handle(request);
    if (fault.gives === 'lost') throw new Unavailable('timed out', { acted: 'maybe' });
    return answer(fault.gives);
  };
  const platform = createPlatform({
    send,
    gate: createGate({ clock, random }),
    clock,
    random,
    apiKey: 'key',
  });
  return {
    clock,
    emulator,
    asked,
    break: (fault: Fault) => void faults.push({ times: Number.POSITIVE_INFINITY, ...fault }),
    contacts: contactType({
      fields: {
        ...fields,
        protect,
        channels: fields.channels.map((channel) => ({
          ...channel,
          replaces: replaces[channel.id],
        })),
      },
      policy: {
        absent: 'keep',
        missing: 'respect',
        optIns: 'on',
        resubscribe: 'never',
        ...contacts,
      },
      absence: {
        deletes: 'off',
        deleteAfterMs: 0,
        absentReadings: 2,
        absentForMs: 20 * 3_600_000,
        ...absence,
      },
      platform: platform.contacts,
      now: clock.now,
    }),
    templates: templateType({
      policy: { templates: 'keep', absentTemplates: 'keep', ...templates },
      platform: platform.templates,
    }),
    run: async (outcome: Promise<SendOutcome | undefined>) => clock.run(outcome),
  };
}

function answer({ status, body }: { status: number; body: unknown }): Answer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, headers: { 'content-type': 'application/json' }, body: text };
}

export const signal = new AbortController().signal;

/** Leaves when it likes, and nobody stops it. */
export const passage = {
  signal,
  abort: signal,
  seen: true,
  leaves: async () => undefined,
  facts: () => ({ defaults: {} }),
  recorded: () => undefined,
};

/** What the error bodies of the platform look like. */
export const refused = (status: number) => ({
  status,
  body: { message: `no ${status}`, why: 'because', fix: 'mend it' },
});

/** Everything unsaid is: nothing wanted, nothing recorded, nothing listed, by a whole reading. */
export function states(known: Partial<States>): States {
  return {
    key: 'ann@example.com',
    desired: [],
    recorded: undefined,
    former: [],
    successors: [],
    renamed: [],
    strays: false,
    origins: ['1'],
    statedOut: [],
    parked: [],
    entries: [],
    restored: false,
    observed: [],
    sight: 'listed',
    certified: true,
    absence: undefined,
    mayDelete: true,
    at: LATER,
    by: LATER,
    latest: known.by ?? LATER,
    lost: new Set(),
    facts: { defaults: {} },
    ...known,
  };
}

/** Decides, has every change acknowledged with no more than a yes; what is recorded then. */
export function carryOut(kind: RecordType, known: States): RecordedRow | undefined {
  const { changes, note } = kind.decide(known);
  let recorded = note ?? known.recorded;
  for (const change of changes.toSorted((a, b) => a.phase - b.phase)) {
    const target = change.op === 'create' ? undefined : (change.target ?? recorded?.id);
    const ack = { is: 'acked' as const, observed: undefined, found: false, at: LATER };
    recorded = kind.acknowledge(
      recorded,
      { ...change, target },
      { ...ack, id: target ?? 'con_new' },
    );
  }
  return recorded;
}
