/** Tells of single changes that await a decision: who, what and why. */
import { z } from 'zod';
import { guardRows } from '../../../domain/guard-classes.ts';
import type { Key } from '../../../domain/record.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import type { Names } from '../../../views/lookup/person-names.ts';
import type { HeldChange } from '../../../store/guards/plan-parts.ts';
import type { Snapshot } from '../../../store/snapshot.ts';
import { successorsOf, whyGone } from '../../../views/lookup/missing-people.ts';

/** A change in words. */
export interface ToldChange {
  kind: HeldChange['kind'];
  key: Key;
  /** The address or hash of the person, or the template. */
  who: string;
  /** The operation in words. */
  change: string;
  /** The id of the channel; '' for the whole record. */
  part: string;
  /** The ids of the CRM records. An id that is an address is hidden from users who see hashes. */
  crmIds: readonly string[];
  why: string;
}

const ids = z.array(z.string());

/** Returns a function that puts a change into words. */
export function tellChanges(snapshot: Snapshot, names: Names): (change: HeldChange) => ToldChange {
  return ({ kind, key, op, part, guard, ids: text, isFurther }) => {
    const named = text === '' ? [] : ids.parse(JSON.parse(text));
    // Who is missing from the CRM has no record in this reading of it.
    const found =
      named.length > 0 || kind === 'template' ? named : snapshot.recorded.originsOf(kind, key);
    const crmIds = found.map((id) => names({ kind, key: id }));
    const gone = (): string => {
      const movedTo = successorsOf(snapshot, key).map((next) => names({ kind, key: next }));
      return whyGone({ absence: snapshot.absences.get(kind, key) }, movedTo);
    };
    const isGone = guard === 'delete';
    const records = crmIds.length === 0 ? '' : ` (record ${crmIds.join(', ')})`;
    const stated =
      kind === 'template' ? guardRows[guard].words.heading : `the CRM says so${records}`;
    const change = changeName(isFurther === 1 ? 'create' : op, false);
    const why = isGone ? gone() : stated;
    return { kind, key, who: names({ kind, key }), change, part, crmIds, why };
  };
}
