/** People as the CRM, the platform and the snapshot state them. */
import { observe } from '../../../src/records/contact/observe/observed-contact.ts';
import type { Membership } from '../../../src/records/contact/observe/contact-state.ts';
import { contactDesire } from '../../../src/records/contact/observe/desired-contact.ts';
import {
  canonicalJson,
  type DesiredRow,
  type ObservedRow,
  type RecordedRow,
} from '../../../src/domain/record.ts';
import type { Change, Op } from '../../../src/domain/change.ts';
import type { Decision } from '../../../src/records/record-type.ts';
import type { Contact } from '../../../src/platform/answer-schemas.ts';
import type { Subscription } from '../../../src/platform/request-schemas.ts';
import { fields, NEWS, NOON, PRODUCT } from './record-stage.ts';

export const ANN = 'ann@example.com';

/** One record of the CRM about Ann. */
export function wish(record: Record<string, unknown> = {}): DesiredRow {
  return contactDesire(fields, () => NOON)(
    { id: '1', email: ANN, newsletter: '', product: '', ...record },
    '',
  );
}

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
