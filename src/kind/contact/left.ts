/** Who left on the platform, and when that was, as far as is known. */
import { all, type Entry } from '../../model/ledger.ts';
import type { RecordedRow } from '../../model/record.ts';
import type { States } from '../kind.ts';
import type { Out, Outs } from '../outs.ts';
import type { ConsentPolicy } from './decide.ts';
import {
  desiredBody,
  recordedBody,
  type Bracket,
  type ObservedContact,
  type RecordedContact,
} from './record.ts';

/** What the CRM is told of: of channels that are kept equal, and of all mail. */
export function outsOf(
  channels: readonly string[],
  { resubscribe }: Pick<ConsentPolicy, 'resubscribe'>,
): Outs {
  const isKept = ({ channel }: Out): boolean => channel === all || channels.includes(channel);
  return {
    recorded: (row) => optOutsOf(row).filter(isKept),
    remembered(entry) {
      const out = optOutOf(entry);
      return out && isKept(out) ? out : undefined;
    },
    saysSo({ body }, { channel }) {
      const wishes = desiredBody.parse(JSON.parse(body)).channels;
      const about = channel === all ? channels : [channel];
      return about.every((id) => wishes[id] === 'opt_out');
    },
    isNewer({ body }, { by }) {
      const { consentAt } = desiredBody.parse(JSON.parse(body));
      return resubscribe === 'newer' && consentAt !== null && consentAt > by;
    },
  };
}

/**
 * When somebody who is out of all mail went: after they were last seen in it (null: they never
 * were), and not later than this. What was not read just now is known no better than before.
 */
export function leftSince(
  { observed, recorded: row, by }: States,
  recorded: RecordedContact | undefined,
  shown: readonly ObservedContact[],
): Bracket | undefined {
  if (observed.length === 0) return recorded?.left;
  if (!shown.some(({ left }) => left)) return undefined;
  if (recorded?.left) return recorded.left;
  const wasIn = recorded !== undefined && !recorded.contacts.some(({ left }) => left);
  return { after: wasIn ? (row?.seenAt ?? null) : null, by };
}

/** What the ledger tells of a contact that is gone; undefined: not how somebody left. */
export function optOutOf({ part, cause, through, after, by }: Entry): Out | undefined {
  // Of another address of the same CRM record it is told under that one, or nobody's any more.
  if (through === 'id' || cause === 'vanished' || cause === 'erasure') return undefined;
  return { channel: part, cause, after, by };
}

/** The channels by name, then all mail. What was not dated was so when it was last seen. */
export function optOutsOf({ body, seenAt }: Pick<RecordedRow, 'body' | 'seenAt'>): Out[] {
  const { channels, contacts, left } = recordedBody.parse(JSON.parse(body));
  const undated = { after: null, by: seenAt };
  const outs = Object.entries(channels).flatMap(([channel, { is, by, made }]): Out[] =>
    is === 'opt_out' && by === 'platform'
      ? [{ channel, cause: 'opt_out', ...(made ?? undated) }]
      : [],
  );
  const gone = contacts.find((contact) => contact.left);
  if (!gone) return outs;
  const [cause = 'all_mail'] = gone.causes ?? [];
  return [...outs, { channel: '*', cause, ...(left ?? undated) }];
}
