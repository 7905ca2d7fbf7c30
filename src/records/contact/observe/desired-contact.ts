/** Converts CRM records to canonical form, as configured in the section `contacts`. */
import type { Condition } from '../../../domain/condition.ts';
import { isDotSegment } from '../../../domain/address-part.ts';
import { fieldAt, isLossy, isObject, textOf } from '../../../domain/values/record-field.ts';
import {
  canonicalJson,
  type DesiredRow,
  type Fault,
  fingerprint,
  type UnknownWord,
} from '../../../domain/record.ts';
import {
  addressWithin,
  hasAddressForm,
  holdsLookAlike,
  notAnAddress,
  resemblesAddress,
} from '../values/email-address.ts';
import { type ConsentReader, consentReader, type ConsentTime } from './consent-time.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { DesiredContact } from './contact-state.ts';
import {
  type Ask,
  asking,
  type Flag,
  flagsIn,
  judged,
  type ListedFlag,
  namesIn,
  notAnAnswer,
  notEvaluated,
  type ColumnReading,
  type StatedField,
} from '../values/field-statement.ts';

/** The fields of a CRM record that are read: column names or dotted paths, or a condition. */
export interface ContactFields {
  id: string;
  email: string;
  /** The setting for deleted records. Yes means that the person was deleted in the CRM. */
  deleted?: Flag | undefined;
  /** The settings for people who want no mail at all. A yes in any of them is an opt-out. */
  unsubscribed?: Flag | readonly Flag[] | undefined;
  consentAt?: ConsentTime | undefined;
  /** The condition for the scope; if false, the record is absent but for its opt-outs. */
  include?: Condition | undefined;
  /** Addresses, and conditions that are true for a protected person. */
  protect?: readonly (string | { readonly when: Condition })[] | undefined;
  channels: readonly {
    id: string;
    subscription: StatedField;
    replaces?: string | undefined;
  }[];
}

const optOut = 'contacts.unsubscribed';

/** Returns the names of the required source fields, each once. */
export function fieldNames(fields: ContactFields): string[] {
  const { deleted, consentAt } = fields;
  const optOuts = flagsIn(optOut, fields.unsubscribed).map(({ stated }) => stated);
  const optional = [deleted, ...optOuts, consentAt].flatMap(namesIn);
  const channels = fields.channels.flatMap(({ subscription }) => namesIn(subscription));
  const scope = [fields.include, ...protectingConditions(fields)].flatMap(
    (condition) => condition?.fields ?? [],
  );
  return [...new Set([fields.id, fields.email, ...optional, ...scope, ...channels])];
}

/**
 * Returns the function that converts a CRM record to canonical form. An invalid record, or one out
 * of scope, keeps only the opt-outs that it states. The latter needs no id and no address, but its
 * subscriptions must be readable, because they may be opt-outs. A consent after `passed` does
 * not count, and one after `future` never will; all times are in epoch milliseconds.
 */
export function contactDesire(
  fields: ContactFields,
  now: () => number,
  passed = now,
  future = now,
) {
  const formOf = forms();
  const asks = asksOf(fields, now);
  const consentTime = fields.consentAt === undefined ? undefined : consentReader(fields.consentAt);
  const rowOf = (value: Record<string, unknown>, place: string, found: Found): DesiredRow => {
    const { faults } = found;
    // A plain false only puts a record out of scope; other results are faults.
    const scope = fields.include?.judge(value) ?? { gives: true };
    const isOut = 'gives' in scope && scope.gives === false;
    if ('failsOn' in scope) faults.push(notEvaluated('contacts.include', scope));
    else if (typeof scope.gives !== 'boolean')
      faults.push(notAnAnswer('contacts.include', 'true nor false'));
    const id = text(fieldAt(value, fields.id));
    const unnamed = faultOfId(fields.id, id);
    const given = fieldAt(value, fields.email);
    // A list or an object without any value is as empty as an empty text.
    const isEmpty = isObject(given) && Object.values(given).every((one) => textOf(one) === '');
    const written = isEmpty ? '' : text(given).trim().toLowerCase();
    const address = contactKey(written);
    const gone = isOut ? 'no' : answered(asks.deleted, value, found);
    const present = gone === 'yes' ? 'flagged' : 'present';
    const presence = isOut ? 'outside' : present;
    const { channels, ...values } = wishes(asks, value, found, gone === 'unread');
    const mayOptOut = (values.outBy ?? values.unread) !== undefined;
    // A record with a look-alike is invalid, and its opt-outs reach the contact with that address.
    const isForm = hasAddressForm(address);
    const isFine = isForm && !holdsLookAlike(address);
    const within = mayOptOut && !isForm ? addressWithin(written) : undefined;
    const key = isForm ? address : within;
    const single = written === unreadable ? undefined : address;
    const isMeant = single === undefined || resemblesAddress(written);
    const isLost = mayOptOut && !isFine && within === undefined && isMeant;
    // It comes before all other faults, because nobody can tell who must get no mail.
    if (isLost) {
      const { value: _, ...fault } = notAnAddress(fields.email, single);
      const reason = `${fault.reason}, so an opt-out of the record reaches nobody`;
      faults.unshift({ ...fault, reason, mayOptOut: true });
    }
    if (!isOut) {
      if (unnamed) faults.push(unnamed);
      if (address === '') faults.push(blank(fields.email, 'address-missing'));
      else if (!isFine && !isLost) faults.push(notAnAddress(fields.email, single));
    }
    const stated = isOut ? null : statedAt(consentTime, value, faults);
    const early = (stated !== null && stated > future()) || undefined;
    const consentAt = early || (stated ?? 0) <= passed() ? stated : null;
    // Addresses are compared later. A condition without a result makes the record invalid.
    const isKept = asks.protect.map((ask) => answered(ask, value, found)).includes('yes');
    if (isOut || faults.length > 0) {
      for (const [name, wish] of Object.entries(channels)) {
        if (wish === 'opt_in') channels[name] = null;
      }
    }
    return {
      kind: 'contact',
      id: unnamed ? '' : id,
      key,
      alias: key ?? address,
      place,
      ...formOf({
        presence,
        channels,
        ...values,
        spelling: key !== address || written === key ? undefined : written,
        consentAt,
        early,
        protected: isKept || undefined,
      }),
      presence,
      ...brokenBy(found, { field: fields.email, address, isValid: isForm }),
      ...(found.shapes.length > 0 && { shapes: found.shapes }),
    };
  };
  return (value: Record<string, unknown>, place: string): DesiredRow => {
    const found = nothingFound(false);
    const row = rowOf(value, place, found);
    const { serials: columns } = found;
    if (columns.length === 0) return row;
    return { ...row, asDates: { columns, row: rowOf(value, place, nothingFound(true)) } };
  };
}

interface Found extends ColumnReading {
  faults: Fault[];
  unknown: UnknownWord[];
}

function nothingFound(serialsAreDates: boolean): Found {
  return { faults: [], unknown: [], shapes: [], serials: [], serialsAreDates };
}

/** Returns why a record is invalid: an unreadable opt-out first, then an empty address. */
function brokenBy(
  { faults, unknown }: Found,
  { field, address, isValid }: { field: string; address: string; isValid: boolean },
) {
  const [first] = faults;
  if (first === undefined) return { invalid: undefined };
  const unread = faults.find((fault) => fault.mayOptOut);
  if (address === '') {
    // Its words are not listed with those of others, because it may be an empty row of a sheet.
    const fault = unread ? { ...unread, option: undefined } : blank(field, 'address-missing');
    return { invalid: { ...fault, noAddress: true } };
  }
  const fault = unread ?? first;
  return { invalid: isValid ? fault : { ...fault, noAddress: false }, unknown };
}

interface Asks {
  deleted: Ask;
  unsubscribed: readonly (ListedFlag & { ask: Ask })[];
  protect: readonly Ask[];
  channels: readonly { id: string; option: string; fields: string; ask: Ask }[];
}

/** Returns what the settings ask each record. `now` returns milliseconds since the epoch. */
export function asksOf(fields: ContactFields, now: () => number): Asks {
  const { deleted, channels } = fields;
  const flag = (use: 'deleted' | 'unsubscribed', { option, stated }: ListedFlag): Ask =>
    asking(stated, { use, option, called: `${option}.when`, now });
  const deletions = flagsIn('contacts.deleted', deleted).map((one) => flag('deleted', one));
  const [gone = () => 'no' as const] = deletions;
  return {
    deleted: gone,
    unsubscribed: flagsIn(optOut, fields.unsubscribed).map((one) => ({
      ...one,
      ask: flag('unsubscribed', one),
    })),
    protect: protectingConditions(fields).map(
      (when) => (record) =>
        judged(when, record, { use: 'deleted', called: 'contacts.protect.when' }),
    ),
    channels: channels.map(({ id, subscription }, at) => {
      const isOptOut = typeof subscription === 'object' && 'optOut' in subscription;
      const option = `contacts.channels[${at}].subscription${isOptOut ? '.optOut' : ''}`;
      const asked = { option, called: `subscription.when of "${id}"`, now };
      const ask = asking(subscription, { use: 'subscription', ...asked });
      return { id, option, fields: namesIn(subscription).join(', '), ask };
    }),
  };
}

/** The most cached forms; most records share a few, unless each has a time of consent. */
const mostForms = 10_000;

/** Returns a function that builds the canonical form of a desired state, and caches equal ones. */
function forms() {
  const known = new Map<string, { body: string; fingerprint: string; wants: boolean }>();
  return (wanted: DesiredContact) => {
    const { presence, channels } = wanted;
    const name = JSON.stringify(wanted);
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

function protectingConditions({ protect = [] }: ContactFields): Condition[] {
  return protect.flatMap((one) => (typeof one === 'string' ? [] : [one.when]));
}

/** Returns the wishes, and what decides or hides them. `isUnread`: another no may be unread. */
function wishes(
  { unsubscribed, channels }: Asks,
  value: Record<string, unknown>,
  found: Found,
  isUnread: boolean,
) {
  const answers = unsubscribed.map((one) => ({ ...one, says: answered(one.ask, value, found) }));
  const leaving = answers
    .filter(({ says }) => says === 'yes')
    .flatMap(({ stated }) => namesIn(stated));
  const isOpen = isUnread || answers.some(({ says }) => says === 'unread');
  const wanted: DesiredContact['channels'] = {};
  const outBy: Record<string, string> = {};
  const unread: string[] = [];
  for (const { id, fields, ask } of channels) {
    const says = answered(ask, value, found);
    const by = says === 'no' ? [...leaving, fields] : leaving;
    wanted[id] = says === 'yes' ? 'opt_in' : null;
    if (by.length > 0) {
      wanted[id] = 'opt_out';
      outBy[id] = by.join(', ');
    } else if (isOpen || says === 'unread') unread.push(id);
  }
  return {
    channels: wanted,
    ...(Object.keys(outBy).length > 0 && { outBy }),
    ...(unread.length > 0 && { unread }),
  };
}

/** Returns the answer, or `unread` with a fault, which makes the record invalid. */
function answered(ask: Ask, value: Record<string, unknown>, found: Found) {
  const answer = ask(value, found);
  if (typeof answer === 'string') return answer;
  found.faults.push(answer.fault);
  if (answer.unknown) found.unknown.push(answer.unknown);
  return 'unread';
}

/** Returns when consent was stated, in milliseconds since the epoch; null if not stated. */
function statedAt(
  reader: ConsentReader | undefined,
  value: Record<string, unknown>,
  faults: Fault[],
): number | null {
  if (!reader) return null;
  const written = text(fieldAt(value, reader.field));
  const time = reader.read(written);
  if (time !== undefined) return time;
  const { reason, fix } = reader.faultOf(written);
  faults.push({ cause: 'consent-time-unreadable', reason: `"${reader.field}" ${reason}`, fix });
  return null;
}

const text = (value: unknown): string => textOf(value) ?? unreadable;

/** Represents an object or a list where a single value belongs. No word has this text. */
const unreadable = '\u0000';

function blank(field: string, cause: 'address-missing' | 'id-missing'): Fault {
  return { cause, reason: `"${field}" is empty`, fix: 'fill it in the CRM' };
}

function faultOfId(field: string, id: string): Fault | undefined {
  if (id === '') return blank(field, 'id-missing');
  if (id === unreadable) {
    return {
      cause: 'no-single-value',
      reason: `"${field}" is no single value`,
      fix: 'name a field that holds a text or number',
    };
  }
  const what = isLossy(id)
    ? 'holds U+FFFD in place of a lost letter'
    : isDotSegment(id.trim()) && 'consists of dots, which would lead to another address of the CRM';
  if (what === false) return undefined;
  return { cause: 'id-missing', reason: `"${field}" ${what}`, fix: 'give the record another id' };
}
