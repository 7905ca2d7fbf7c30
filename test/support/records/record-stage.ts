import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { AbsenceRules } from '../../../src/records/contact/consent/absent-people.ts';
import {
  contactDesire,
  type ContactFields,
} from '../../../src/records/contact/observe/desired-contact.ts';
import type { ConsentPolicy } from '../../../src/records/contact/consent/rules.ts';
import type { Acknowledged, SendOutcome } from '../../../src/records/change-outcome.ts';
import type { Decision, Undoing } from '../../../src/records/decision.ts';
import { newsOfChange } from '../../../src/records/contact/consent/do-not-contact-entries.ts';
import type { Cause, Entry } from '../../../src/domain/do-not-contact.ts';
import { acknowledge } from '../../../src/records/contact/send/acknowledged-change.ts';
import type { SettlementAsked } from '../../../src/records/contact/contacts.ts';
import {
  type TemplatePolicy,
  undoTemplate,
} from '../../../src/records/template/template-decision.ts';
import {
  decodeTemplate,
  type TemplateStates,
} from '../../../src/records/template/template-state.ts';
import { acknowledgeTemplate } from '../../../src/records/template/templates.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Answer, Send } from '../../../src/domain/exchange.ts';
import {
  canonicalJson,
  type DesiredRow,
  type ObservedRow,
  type RecordedRow,
} from '../../../src/domain/record.ts';
import { virtualClock } from '../waiting.ts';
import { assembleTypes } from './record-types.ts';
import { observe } from '../../../src/records/contact/observe/observed-contact.ts';
import {
  type ContactRenamed,
  type ContactStates,
  type ContactSuccessor,
  decodeContact,
  type Membership,
  recordedBody,
} from '../../../src/records/contact/observe/contact-state.ts';
import type { Change, DoneChange, Op } from '../../../src/domain/change.ts';
import type { Contact } from '../../../src/platform/answer-schemas.ts';
import type { Subscription } from '../../../src/platform/request-schemas.ts';

// People and templates over the whole emulator, through the real client: no socket, no wall clock.

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
  templates?: Partial<Omit<TemplatePolicy, 'tests'>>;
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

type Raw<Row extends object> = Omit<Row, 'desired' | 'recorded'> & {
  desired: readonly DesiredRow[];
  recorded: RecordedRow | undefined;
};
type RawSuccessor = Raw<Omit<ContactSuccessor, 'states'>> & { states?: States | undefined };
type RawRenamed = Raw<Omit<ContactRenamed, 'row' | 'successors'>> & {
  row: ObservedRow | undefined;
  successors: readonly RawSuccessor[];
};

/** What is known of a person or a template, with rows as the snapshot stores them. */
export interface States extends Raw<
  Omit<ContactStates, 'former' | 'successors' | 'renamed' | 'observed'>
> {
  former: readonly { row: RecordedRow; seen: readonly ObservedRow[] }[];
  successors: readonly RawSuccessor[];
  renamed: readonly RawRenamed[];
  observed: readonly ObservedRow[];
}

const decodedPerson = (row: RecordedRow | undefined) => row && decodeContact.recorded(row);
const desiredPeople = (rows: readonly DesiredRow[]) =>
  rows.map((row) => decodeContact.desired(row));
const shownPeople = (rows: readonly ObservedRow[]) =>
  rows.map((row) => decodeContact.observed(row));

/** Decodes every row, as a run does. */
export function decoded(known: States): ContactStates {
  const { desired, recorded, former, successors, renamed, observed } = known;
  return {
    ...known,
    desired: desiredPeople(desired),
    recorded: decodedPerson(recorded),
    former: former.map(({ row, seen }) => ({
      row: decodeContact.recorded(row),
      seen: shownPeople(seen),
    })),
    successors: successors.map(decodedSuccessor),
    renamed: renamed.map((one) => ({
      ...one,
      desired: desiredPeople(one.desired),
      recorded: decodedPerson(one.recorded),
      successors: one.successors.map(decodedSuccessor),
      row: one.row && decodeContact.observed(one.row),
    })),
    observed: shownPeople(observed),
  };
}

function decodedSuccessor(one: RawSuccessor): ContactSuccessor {
  return {
    ...one,
    desired: desiredPeople(one.desired),
    recorded: decodedPerson(one.recorded),
    states: one.states && decoded(one.states),
  };
}

function decodedTemplate(known: States): TemplateStates {
  const { key, desired, recorded, former, observed, sight, certified, at } = known;
  const [old] = former;
  return {
    key,
    sight,
    certified,
    at,
    desired: desired.map((row) => decodeTemplate.desired(row)),
    recorded: recorded && decodeTemplate.recorded(recorded),
    former: old && decodeTemplate.recorded(old.row),
    observed: observed.map((row) => decodeTemplate.observed(row)),
  };
}

export type People = ReturnType<typeof open>['contacts'];
export type Letters = ReturnType<typeof open>['templates'];

/** An emulator with two channels, people and templates on it, and a wire that can be cut. */
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
  const channels = fields.channels.map((one) => ({ ...one, replaces: replaces[one.id] }));
  const types = assembleTypes({
    send,
    clock,
    random,
    fields: { ...fields, protect, channels },
    policy: { ...contacts, ...templates },
    absence,
  });
  return {
    clock,
    emulator,
    asked,
    break: (fault: Fault) => void faults.push({ times: Number.POSITIVE_INFINITY, ...fault }),
    contacts: {
      ...types.contact,
      acknowledge,
      learn: (change: Change, after: RecordedRow | undefined, entries: readonly Entry[]) =>
        newsOfChange(decodeContact.change(change), decodedPerson(after), entries),
      decide: (known: States) => types.contact.decide(decoded(known)),
      undo: (known: States, undoing: Undoing) => types.contact.undo(decoded(known), undoing),
      settle: (known: States, of: SettlementAsked) => types.contact.settle(decoded(known), of),
    },
    templates: {
      ...types.template,
      acknowledge: acknowledgeTemplate,
      decide: (known: States) => types.template.decide(decodedTemplate(known)),
      undo: (known: States, undoing: Undoing) => undoTemplate(decodedTemplate(known), undoing),
    },
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

/** The answer to a change that the platform has made, without what it shows by then. */
export const acked = (id = 'con_1', more: Partial<Acknowledged> = {}): Acknowledged => ({
  is: 'acked',
  id,
  observed: undefined,
  found: false,
  at: LATER,
  ...more,
});

/** An entry of the do-not-contact list, found by the address. */
export const entry = (cause: Cause, part = NEWS, more: Partial<Entry> = {}): Entry => {
  const found = { seq: 1, through: 'address', bears: true } as const;
  return { ...found, part, cause, contact: 'con_9', after: null, by: NOON, ...more };
};

/** What is recorded of Ann. */
export const bodyOf = (row: RecordedRow | undefined) =>
  recordedBody.parse(JSON.parse(row?.body ?? '{}'));
export const newsOf = (row: RecordedRow | undefined) => bodyOf(row).channels[NEWS];

/** Decides, has every change acknowledged with no more than a yes; what is recorded then. */
export function carryOut(kind: People | Letters, known: States): RecordedRow | undefined {
  const { changes, note } = kind.decide(known);
  let recorded = note ?? known.recorded;
  for (const change of changes.toSorted((a, b) => a.phase - b.phase)) {
    const target = change.op === 'create' ? undefined : (change.target ?? recorded?.id);
    recorded = kind.acknowledge(recorded, { ...change, target }, acked(target ?? 'con_new'));
  }
  return recorded;
}

// People as the CRM, the platform and the snapshot state them.

export const ANN = 'ann@example.com';

/** One record of the CRM about Ann. */
export function wish(record: Record<string, unknown> = {}): DesiredRow {
  return contactDesire(fields, () => NOON)(
    { id: '1', email: ANN, newsletter: '', product: '', ...record },
    '',
  );
}

/** A record that the configuration does not include. */
export const outside = (record: Record<string, unknown> = {}): DesiredRow =>
  contactDesire(
    { ...fields, include: { text: '', fields: [], judge: () => ({ gives: false }) } },
    () => NOON,
  )({ id: '2', email: ANN, newsletter: '', product: '', ...record }, '');
export const bothIn = () => wish({ newsletter: 'yes', product: 'yes' });

interface Shown extends Partial<Omit<Contact, 'channels'>> {
  news?: Subscription;
  product?: Subscription;
  /** In a channel that is not configured. */
  other?: Subscription;
}

function platformContact({ news, product, other, ...rest }: Shown = {}): Contact {
  const channels = [
    ...(news ? [{ id: NEWS, name: '', subscription: news }] : []),
    ...(product ? [{ id: PRODUCT, name: '', subscription: product }] : []),
    ...(other ? [{ id: 'ch_other', name: '', subscription: other }] : []),
  ];
  return { id: 'con_1', email: ANN, status: 'subscribed', channels, ...rest };
}

/** One contact of Ann as the platform shows it. */
export function shown(contact: Shown = {}): ObservedRow {
  return observe(platformContact(contact), new Set([NEWS, PRODUCT]));
}

const memberships = {
  in: { is: 'opt_in', by: 'us' },
  us: { is: 'opt_out', by: 'us' },
  platform: { is: 'opt_out', by: 'platform' },
} as const satisfies Record<string, Membership>;

interface Remembered {
  /** Undefined when the contact has vanished. */
  id?: string | undefined;
  left?: boolean;
  news?: keyof typeof memberships | undefined;
  product?: keyof typeof memberships | undefined;
  seen?: ObservedRow;
}

/** What the snapshot holds of Ann. */
export function remembered(known: Remembered = {}): RecordedRow {
  const { left = false, news, product, seen } = known;
  const id = 'id' in known ? known.id : 'con_1';
  const channels = {
    ...(news && { [NEWS]: memberships[news] }),
    ...(product && { [PRODUCT]: memberships[product] }),
  };
  const is = Object.entries(channels).map(([name, membership]) => [name, membership.is]);
  const observed: unknown = seen
    ? JSON.parse(seen.body)
    : { id: id ?? 'con_1', left, channels: Object.fromEntries(is) };
  return {
    kind: 'contact',
    key: ANN,
    id,
    ownership: 'created',
    body: canonicalJson({ contacts: [observed], defaults: [], channels }),
    shown: seen?.fingerprint,
    desired: undefined,
    seenAt: NOON,
  };
}

/** The changes in the order they are sent, as "create ch_news" or "opt_out ch_news → con_1". */
export function steps({ changes }: Pick<Decision, 'changes'>): string[] {
  return changes
    .toSorted((a, b) => a.phase - b.phase)
    .map(({ op, part, target }) => `${op} ${part}${target ? ` → ${target}` : ''}`);
}

export const conflicts = ({ problems }: Decision): string[] =>
  problems.filter((problem) => problem.class === 'conflict').map(({ part }) => part);

const phases: Partial<Record<Op, number>> = { opt_out: 0, delete: 2 };

export function change(op: Op, target?: string, part = NEWS): Change {
  return {
    kind: 'contact',
    key: ANN,
    op,
    part,
    target,
    body: '{"forbids":false}',
    phase: phases[op] ?? 1,
  };
}

// One person of whom an earlier run has changed something, and what is recorded then.

export const run = 'r1';
export const says = (newsletter: string, more: object = {}) => wish({ newsletter, ...more });
export const isIn = [shown({ news: 'opt_in' })];
export const isOut = [shown({ news: 'opt_out' })];
export const ours = { is: 'opt_out', by: 'us', acked: NOON } as const;

export function withNews(membership: Membership): RecordedRow {
  const row = remembered({ news: membership.is === 'opt_in' ? 'in' : 'us' });
  const body: unknown = JSON.parse(row.body);
  return { ...row, body: canonicalJson({ ...Object(body), channels: { [NEWS]: membership } }) };
}

export const stated = withNews({ ...ours, cause: 'stated', stated: ['1'], bound: ['1'] });
export const undone = withNews({
  ...ours,
  cause: 'undone',
  bound: ['1'],
  undone: { run, said: 'opt_in' },
});
export const theirs = withNews({ is: 'opt_out', by: 'platform', made: { after: null, by: NOON } });
export const done = (op: DoneChange['op'], more: Partial<DoneChange> = {}): DoneChange => ({
  op,
  part: op === 'delete' ? '' : NEWS,
  target: op === 'create' ? undefined : 'con_1',
  body: '{}',
  before: undefined,
  later: undefined,
  isUndone: false,
  wasThere: false,
  ...more,
});
