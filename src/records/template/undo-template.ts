/**
 * Decides how the changes of an earlier run to one template are undone. The function is pure. The
 * first matching line applies:
 *
 *   journaled         now                                                →
 *   any               a later run changed it                             no: changed-later
 *   any               it is gone from the platform                       no: template-gone
 *   any               edited on the platform since                       no: template-edited
 *   create            there                                              archive
 *   update, archive   the version before was not kept, or had a field    no: version-unknown
 *                     empty that cannot be emptied again
 *   update, archive   there                                              update to that version
 *
 * The recorded template remembers what the source states. Until the source states something else,
 * no run writes the template again.
 */
import { z } from 'zod';
import type { Change, DoneChange } from '../../domain/change.ts';
import type { Undone } from '../record-type.ts';
import { changedLater, type NotUndone, type Undoing } from '../undo.ts';
import { templateChange } from './template-changes.ts';
import { isEdited } from './template-decision.ts';
import {
  decodeTemplate,
  type ObservedTemplate,
  type SomeFields,
  someFields,
  type TemplateStates,
} from './template-state.ts';

/** Returns the inverse of what a run did to a template, or why it cannot be undone. */
export function undoTemplate(states: TemplateStates, { run, changes }: Undoing): Undone {
  const decision = { changes: [], note: undefined, adopts: false, forgets: [], problems: [] };
  // The second step of a creation is undone with the first one.
  const all = changes.filter(({ op }) => op !== 'complete');
  const done = all.at(-1);
  if (!done) return { decision, cannot: [] };
  const found = inverseOf(states, { run, changes: all }, changes.at(-1) ?? done);
  if ('reason' in found) return { decision, cannot: [found] };
  return { decision: { ...decision, changes: [found] }, cannot: [] };
}

function inverseOf(
  states: TemplateStates,
  { run, changes }: Undoing,
  done: DoneChange,
): Change | NotUndone {
  const { part, later } = done;
  const refused = (rule: string, reason: string): NotUndone => ({
    op: done.op,
    part,
    rule,
    reason,
  });
  if (later !== undefined) return changedLater(done);
  const recorded = states.recorded?.value;
  const target = done.target ?? states.recorded?.id;
  const shown = states.observed.map(({ value }) => value).find(({ id }) => id === target);
  if (!recorded || !shown) return refused('template-gone', 'it is gone from the platform');
  const { value } = decodeTemplate.change(done);
  if (isEdited(recorded, shown, { ...value.wanted, name: value.wanted.name ?? '' })) {
    return refused('template-edited', 'it was edited on the platform since');
  }
  const fields = restored(changes, shown);
  if (!fields) {
    const reason = 'the version before was not kept, or had a field empty that cannot be emptied';
    return refused('version-unknown', reason);
  }
  const source = states.desired[0]?.fingerprint ?? null;
  const about = { target: shown.id, fields, wanted: { ...recorded.sent, ...fields }, shown };
  const op = fields.status === 'archived' ? 'archive' : 'update';
  const made = templateChange(states.key, op, {
    ...about,
    undone: { run, source },
  });
  return { ...made, why: made.why && { ...made.why, rule: 'undo' } };
}

/** The fields that an update can empty. */
const emptiable: ReadonlySet<string> = new Set([
  'description',
  'fromEmail',
  'replyTo',
  'previewText',
]);

const kept = z.record(z.string(), z.unknown());

/**
 * Returns the fields that bring back the version before; undefined if they are not all known. The
 * changes are those of one run, oldest first.
 */
function restored(changes: readonly DoneChange[], shown: ObservedTemplate): SomeFields | undefined {
  if (changes.some(({ op }) => op === 'create')) return { status: 'archived' };
  const before = changes[0]?.before;
  if (before === undefined) return undefined;
  const version = kept.parse(JSON.parse(before));
  const sent = changes.flatMap((done) => Object.keys(decodeTemplate.change(done).value.fields));
  const entries = [...new Set(sent)].map((name) => {
    const empty = emptiable.has(name) ? '' : undefined;
    return [name, version[name] ?? empty] as const;
  });
  if (shown.tooDeep || entries.some(([, value]) => value === undefined)) return undefined;
  const fields = someFields.safeParse(Object.fromEntries(entries));
  return fields.success ? fields.data : undefined;
}
