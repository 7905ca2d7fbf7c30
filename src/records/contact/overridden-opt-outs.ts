/** The opt-outs that the opt-ins of a run overrode, and what is recorded if they count again. */
import type { DoneChange } from '../../domain/change.ts';
import { canonicalJson } from '../../domain/record.ts';
import type { Decision } from '../record-type.ts';
import { newsOfSight } from './consent/do-not-contact-entries.ts';
import type { PersonFacts } from './consent/person-facts.ts';
import { decodeContact } from './observe/contact-rows.ts';
import type { Membership, OverriddenOptOut, RecordedContact } from './observe/contact-state.ts';

/**
 * Returns the opt-outs that the opt-ins of a run overrode, by channel; of several, the person's
 * own. An earlier version did not keep the opt-out with its opt-in. Whatever it was, it is restored
 * as the person's, but not reported to the CRM as such.
 */
export function overriddenIn(changes: readonly DoneChange[]): Map<string, OverriddenOptOut> {
  const found = new Map<string, OverriddenOptOut>();
  for (const done of changes) {
    if (done.op !== 'create' && done.op !== 'opt_in') continue;
    const { overrides, newer, withdraws, changed, since } = decodeContact.change(done).value;
    const isMarked = [newer, withdraws, changed, since].some((mark) => mark !== undefined);
    const unknown = { after: null, by: 'platform', doubtful: true } as const;
    const one = overrides ?? (isMarked ? unknown : undefined);
    if (one && found.get(done.part)?.by !== 'platform') found.set(done.part, one);
  }
  return found;
}

type Noted = Pick<Decision, 'note' | 'news'>;

/** Returns what to record about a person, and on the do-not-contact list, with these opt-outs. */
export function restoring(
  { note, news }: Noted,
  { seen, states }: Pick<PersonFacts, 'seen' | 'states'>,
  optOuts: ReadonlyMap<string, Membership>,
): Noted {
  if (!note || optOuts.size === 0) return { note, ...(news && { news }) };
  const { value } = decodeContact.recorded(note);
  const channels = { ...value.channels, ...Object.fromEntries(optOuts) };
  const body = canonicalJson({ ...value, channels } satisfies RecordedContact);
  const row = { ...note, body };
  return { note: row, news: newsOfSight(decodeContact.recorded(row), seen, states) };
}
