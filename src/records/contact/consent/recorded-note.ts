/** Builds what is recorded of a person once they are decided, before anything is sent. */
import { canonicalJson, type RecordedRow } from '../../../domain/record.ts';
import { hasLeft } from './absence.ts';
import { isProtectedByRecord, type PersonFacts } from './facts.ts';
import { leftSince } from './platform-opt-outs.ts';
import type { RecordedContact } from '../observe/contact-state.ts';
import { defaultsIn } from '../observe/last-observed.ts';

/**
 * Returns the row to record. `isSettled`: nothing is left to do, so the person need not be decided
 * again until the CRM or the platform changes.
 */
export function noteOf(facts: PersonFacts, isSettled: boolean): RecordedRow {
  const { states, recorded, shown, renamed, now } = facts;
  const body: RecordedContact = {
    channels: now.channels,
    contacts: shown.length > 0 ? shown : (recorded?.contacts ?? []),
    defaults: recorded ? defaultsIn(shown, states, recorded) : [],
    left: leftSince(states, recorded, shown),
    outgrown: now.outgrown,
    protected: isProtectedByRecord(states.desired, recorded),
    renamed: renamed.length > 0 ? renamed.map(({ contact }) => contact) : undefined,
  };
  const [row, twin] = states.desired;
  return {
    kind: 'contact',
    key: states.key,
    id: idOf(facts),
    ownership: ownershipOf(facts),
    body: canonicalJson(body),
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    ...shownOf(facts),
  };
}

/**
 * The recorded contact while it is there. Another one takes its place only if the CRM names the
 * person.
 */
function idOf({ states, shown }: PersonFacts): string | undefined {
  const before = shown.find((contact) => contact.id === states.recorded?.id);
  const isOther = states.recorded && hasLeft(states);
  return before?.id ?? (isOther ? undefined : shown[0]?.id);
}

/** A person that the CRM never named as present is not ours. Another contact is adopted anew. */
function ownershipOf(facts: PersonFacts): RecordedRow['ownership'] {
  const { recorded: before, desired } = facts.states;
  const isNamed = desired.length > 0 && !hasLeft(facts.states);
  if (!before || before.ownership === 'noted') return isNamed ? 'adopted' : 'noted';
  return [undefined, before.id].includes(idOf(facts)) ? before.ownership : 'adopted';
}

/** The fingerprint of what the one recorded contact shows; undefined: decide again next time. */
function shownOf(facts: PersonFacts): Pick<RecordedRow, 'shown' | 'seenAt'> {
  const { observed, sight, recorded, desired, lost, at } = facts.states;
  if (lost.size > 0 && desired.length === 0) return { shown: undefined, seenAt: at };
  if (observed.length === 0 && sight === 'assumed') {
    return { shown: recorded?.shown, seenAt: recorded?.seenAt ?? 0 };
  }
  const isRecorded = idOf(facts) !== undefined && facts.shown.length === 1;
  return { shown: isRecorded ? observed[0]?.fingerprint : undefined, seenAt: at };
}
