/** From a CRM record to what it wants (README, configuration: contacts). */
import type { Condition } from '../../model/condition.ts';
import { fieldAt } from '../../model/field.ts';
import { canonicalJson, fingerprint, type DesiredRow, type Fault } from '../../model/record.ts';
import { textOf } from '../../model/scalar.ts';
import { email as emailForm, type Subscription } from '../../platform/request.ts';
import type { Kind } from '../kind.ts';
import { readConsentAt } from './consent-at.ts';
import { contactKey } from './observe.ts';
import type { DesiredContact } from './record.ts';

/** Which field of a CRM record says what: column names or dotted paths, or a condition. */
export interface ContactFields {
  id: string;
  email: string;
  /** True: the CRM says this person is gone. */
  deleted?: Flag | undefined;
  /** True: this person wants no mail at all. */
  unsubscribed?: Flag | undefined;
  /** When the person last stated their will (ISO 8601). */
  consentAt?: string | undefined;
  /** False: the record is out of scope, as if it were not there, save for its opt-outs. */
  include?: Condition | undefined;
  /** Addresses, and conditions that are true of a person who is protected. */
  protect?: readonly (string | { readonly when: Condition })[] | undefined;
  channels: readonly {
    id: string;
    subscription: string | Wanted;
    /** The channel it took over from. */
    replaces?: string | undefined;
  }[];
}

/** True opts in, false opts out, null does neither. */
interface Wanted {
  readonly when: Condition;
}

/** A field that is true unless it is empty or says no, or a condition that gives true or false. */
type Flag = string | { readonly when: Condition };

const yes = new Set(['true', 'yes', 'y', '1', 'opt_in', 'subscribed']);
const no = new Set(['false', 'no', 'n', '0', 'opt_out', 'unsubscribed']);
const untrue = new Set(['', 'false', 'no', 'n', '0']);

/** The names a source must know, each once. */
export function fieldNames(fields: ContactFields): string[] {
  const { deleted, unsubscribed, consentAt } = fields;
  const optional = [deleted, unsubscribed, consentAt].flatMap(namesIn);
  const channels = fields.channels.flatMap(({ subscription }) => namesIn(subscription));
  const scope = [fields.include, ...protectingConditions(fields)].flatMap(
    (condition) => condition?.fields ?? [],
  );
  return [...new Set([fields.id, fields.email, ...optional, ...scope, ...channels])];
}

function namesIn(stated: Flag | undefined): readonly string[] {
  if (stated === undefined) return [];
  return typeof stated === 'string' ? [stated] : stated.when.fields;
}

/**
 * Puts CRM records in canonical form. An invalid one keeps the opt-outs it states, and nothing
 * else. So does one that is out of scope: it needs no id and no address, but consents that can be
 * read, for they may be opt-outs.
 */
export function contactDesire(fields: ContactFields): Kind['desire'] {
  const formOf = forms();
  return (value, place) => {
    const faults: Fault[] = [];
    const isOut = isOutOfScope(fields.include, value, faults);
    const id = text(fieldAt(value, fields.id));
    const address = contactKey(text(fieldAt(value, fields.email)));
    const key = isAddress(address) ? address : undefined;
    if (!isOut) {
      if (id === unreadable) faults.push(noSingleValue(fields.id));
      if (id === '') faults.push(blank(fields.id));
      if (!key) faults.push(address === '' ? blank(fields.email) : notAnAddress(fields.email));
    }
    const presence = isOut ? 'outside' : presenceIn(fields, value, faults);
    const channels = wishes(fields, value, faults);
    const consentAt = isOut ? null : statedAt(fields, value, faults);
    const isKept = isProtected(fields, value, faults);
    if (isOut || faults.length > 0) dropOptIns(channels);
    return {
      kind: 'contact',
      id: id === unreadable ? '' : id,
      key,
      alias: address,
      place,
      ...formOf({ presence, channels, consentAt, protected: isKept || undefined }),
      presence,
      invalid: faults[0],
    };
  };
}

type Form = Pick<DesiredRow, 'body' | 'fingerprint' | 'wants'>;

/** Most records say one of a few things; times of consent may give everybody one of their own. */
const mostForms = 10_000;

/** The canonical form of what is wanted, made once while it is known. */
function forms(): (wanted: DesiredContact) => Form {
  const known = new Map<string, Form>();
  return (wanted) => {
    const { presence, channels, consentAt } = wanted;
    // The channels are always the same ones.
    const name = [presence, wanted.protected, consentAt, ...Object.values(channels)].join(' ');
    const found = known.get(name);
    if (found) return found;
    const body = canonicalJson(wanted);
    const wants = presence === 'present' && Object.values(channels).includes('opt_in');
    const form = { body, fingerprint: fingerprint(body), wants };
    if (known.size >= mostForms) known.clear();
    known.set(name, form);
    return form;
  };
}

function protectingConditions({ protect = [] }: Pick<ContactFields, 'protect'>): Condition[] {
  return protect.flatMap((one) => (typeof one === 'string' ? [] : [one.when]));
}

/**
 * Whether a condition of contacts.protect holds for this record; addresses are compared where the
 * person is decided. A condition that gives no answer makes the record invalid, and then what was
 * recorded last counts.
 */
function isProtected(
  fields: Pick<ContactFields, 'protect'>,
  value: Record<string, unknown>,
  faults: Fault[],
): boolean {
  const option = 'contacts.protect.when';
  return protectingConditions(fields)
    .map((when) => says({ when }, { option, value, faults }))
    .includes(true);
}

/** Invisible characters and a scheme ("mailto:") would make a second person of somebody known. */
function isAddress(text: string): boolean {
  return emailForm.safeParse(text).success && !/[\p{Cc}\p{Cf}:]/u.test(text);
}

function presenceIn(
  { deleted }: ContactFields,
  value: Record<string, unknown>,
  faults: Fault[],
): 'flagged' | 'present' {
  return says(deleted, { option: 'contacts.deleted.when', value, faults }) ? 'flagged' : 'present';
}

type Wishes = Record<string, Subscription | null>;

function wishes(fields: ContactFields, value: Record<string, unknown>, faults: Fault[]): Wishes {
  const leaves = says(fields.unsubscribed, { option: 'contacts.unsubscribed.when', value, faults });
  const entries = fields.channels.map(({ id, subscription }): [string, Subscription | null] => {
    const stated =
      typeof subscription === 'string'
        ? read(subscription, value)
        : judged(subscription, { id, value });
    const isFault = stated !== null && typeof stated === 'object';
    if (isFault) faults.push(stated);
    if (leaves) return [id, 'opt_out'];
    return [id, isFault ? null : stated];
  });
  return Object.fromEntries(entries);
}

function statedAt(
  { consentAt: field }: ContactFields,
  value: Record<string, unknown>,
  faults: Fault[],
): number | null {
  const time = field === undefined ? null : readConsentAt(text(fieldAt(value, field)));
  if (time !== undefined) return time;
  faults.push({
    reason: `"${field}" is no time that can be told`,
    fix: 'write it with its zone (2026-03-01T12:00:00Z), or as a day (2026-03-01), or leave it empty',
  });
  return null;
}

type Stated = Subscription | null | Fault;

function read(field: string, value: Record<string, unknown>): Stated {
  const word = text(fieldAt(value, field)).toLowerCase();
  if (yes.has(word)) return 'opt_in';
  if (no.has(word)) return 'opt_out';
  return word === '' ? null : notAConsent(field);
}

function judged(
  { when }: Wanted,
  { id, value }: { id: string; value: Record<string, unknown> },
): Stated {
  const verdict = when.judge(value);
  const option = `subscription.when of "${id}"`;
  if ('failsOn' in verdict) return notEvaluated(option, verdict.failsOn);
  if (verdict.gives === true) return 'opt_in';
  if (verdict.gives === false) return 'opt_out';
  return verdict.gives === null ? null : notAnAnswer(option, 'true, false nor null');
}

/** Only a plain false takes a record out of scope: what is odd leaves it there, invalid. */
function isOutOfScope(
  include: Condition | undefined,
  value: Record<string, unknown>,
  faults: Fault[],
): boolean {
  const verdict = include?.judge(value) ?? { gives: true };
  const option = 'contacts.include';
  if ('failsOn' in verdict) faults.push(notEvaluated(option, verdict.failsOn));
  else if (verdict.gives === false) return true;
  else if (verdict.gives !== true) faults.push(notAnAnswer(option, 'true nor false'));
  return false;
}

function dropOptIns(channels: Wishes): void {
  for (const [id, wish] of Object.entries(channels)) if (wish === 'opt_in') channels[id] = null;
}

interface Asked {
  option: string;
  value: Record<string, unknown>;
  faults: Fault[];
}

/**
 * Whether the record says so. Of a field anything but an empty or a plainly negative value is true:
 * the stricter reading. A condition that gives neither answer is a fault, and says nothing: as an
 * invalid record nobody is deleted, nobody is opted in, and the opt-outs it states stand.
 */
function says(flag: Flag | undefined, { option, value, faults }: Asked): boolean {
  if (flag === undefined) return false;
  if (typeof flag === 'string') return !untrue.has(text(fieldAt(value, flag)).toLowerCase());
  const verdict = flag.when.judge(value);
  if ('failsOn' in verdict) faults.push(notEvaluated(option, verdict.failsOn));
  else if (typeof verdict.gives === 'boolean') return verdict.gives;
  else faults.push(notAnAnswer(option, 'true nor false'));
  return false;
}

function text(value: unknown): string {
  return textOf(value) ?? unreadable;
}

/** An object or a list where a single value belongs: no word that means anything. */
const unreadable = '\u0000';

function blank(field: string): Fault {
  return { reason: `"${field}" is empty`, fix: 'fill it in the CRM' };
}

function noSingleValue(field: string): Fault {
  return {
    reason: `"${field}" is no single value`,
    fix: 'name a field that holds a text or number',
  };
}

function notAnAddress(field: string): Fault {
  return { reason: `"${field}" is not an email address`, fix: 'correct the address in the CRM' };
}

function notAConsent(field: string): Fault {
  return {
    reason: `"${field}" holds no known subscription value`,
    fix: 'use true, yes, y, 1, opt_in, subscribed or false, no, n, 0, opt_out, unsubscribed, or leave it empty',
  };
}

function notEvaluated(option: string, failsOn: readonly string[]): Fault {
  const names = [...new Set(failsOn)].map((name) => `"${name}"`).join(', ');
  return {
    reason: `${option} cannot be evaluated${names && ` with this value of ${names}`}`,
    fix: 'correct it in the CRM, or have the condition allow for it',
  };
}

function notAnAnswer(option: string, wanted: string): Fault {
  return { reason: `${option} gives neither ${wanted}`, fix: 'correct the condition' };
}
