/**
 * Decides what to do about one template.
 *
 *   D = what the source states   R = recorded: sent by us, and shown by the platform after that
 *   O = the platform's templates with that id, or with exactly that name
 *   changed = D is not what we sent   edited = what O shows of D's fields is not what it showed us
 *   #   D    R    O                        →
 *   1   —    —    any                      nothing: foreign
 *   2   —    R    —                        forget
 *   3   —    R    O, listed                absentTemplates: archive → archive; keep → nothing
 *   4   D    —    —                        create (then complete: what only an update can set)
 *   5   D    —    one                      adopt; differing: overwrite → update; keep → conflict
 *   6   D    —    several                  rejected, ids listed
 *   7   D    R    — (vanished)             overwrite → create; keep → conflict
 *                 others with that name    as 5 and 6: ours vanished, and these are foreign
 *   8   D    R    shows D                  nothing; record
 *   9   D    R    not edited, not changed  nothing
 *  10   D    R    not edited, changed      update; but if it differed at adoption: as in 5
 *  10a  D    R    as 10 or 11, and our     as there, but no guard counts the update
 *                 creation is unfinished
 *  9a   D    R    `undo` put back an earlier version, and D is as it was then: nothing, a conflict
 *  11   D    R    edited                   overwrite → keep their version, update; keep → conflict
 *
 * A run that does not list the platform takes for O what R was shown, and repeats the problem of
 * row 11 as long as D is as it was then. An invalid D counts as present, and nothing is done.
 * Without a certified reading of the source no template counts as absent.
 */
import type { RecordProblem } from '../../domain/record-problem.ts';
import { canonicalJson, type Ownership, type RecordedRow } from '../../domain/record.ts';
import type { Decision } from '../record-type.ts';
import { creationOf, templateChange, updateOf } from './template-changes.ts';
import { differing, doubled, edited, gone, incomparable, putBack } from './template-problems.ts';
import { untested } from './template-tests.ts';
import {
  difference,
  type DesiredTemplateRow,
  type ObservedTemplate,
  type RecordedTemplate,
  type TemplateChange,
  type TemplateFields,
  type TemplateStates,
} from './template-state.ts';

/**
 * The policy for templates that were edited, and for templates that are missing from the source.
 */
export interface TemplatePolicy {
  templates: 'keep' | 'overwrite';
  absentTemplates: 'keep' | 'archive';
  /** Whether a test is sent before a template is published. */
  tests?: boolean;
}

/** The phases of changes to templates. */
export const phases = [0];

/** Returns the decision about one template, following the table above. */
export function decideTemplate(states: TemplateStates, policy: TemplatePolicy): Decision {
  const none: Decision = { changes: [], note: undefined, adopts: false, forgets: [], problems: [] };
  const known = states.recorded ?? states.former[0]?.row;
  const recorded = known?.value;
  const shown = shownOf(states, recorded);
  const [row] = states.desired;
  if (!row) return states.recorded ? absent({ states, recorded, shown, policy }, none) : none;
  if (states.desired.length > 1 || row.invalid) return none;
  const stands = standing(states, row, policy);
  if (stands) return { ...none, problems: [stands] };
  const facts = { states, row, desired: row.value, policy };
  const deep = shown.find((template) => template.tooDeep);
  if (deep)
    return { ...none, note: noteDeep(facts, deep), problems: [incomparable(states.key, deep)] };
  const ours = shown.find((template) => template.id === known?.id);
  const replaced = !ours && shown.length > 0;
  if (!recorded || !known || replaced) return unrecorded({ ...facts, shown }, none);
  return {
    ...owned({ ...facts, recorded, ownership: known.ownership, shown: ours }, none),
    forgets: states.recorded ? [] : [known.key],
  };
}

/** Returns the problem for which the template was left alone, if nothing was read since. */
function standing(
  states: TemplateStates,
  row: DesiredTemplateRow,
  { templates }: TemplatePolicy,
): RecordProblem | undefined {
  const { key, recorded } = states;
  const left = isUnread(states) ? recorded?.value.left : undefined;
  if (left?.source !== row.fingerprint) return undefined;
  if (left.edited) return templates === 'keep' ? edited(key, left.edited) : undefined;
  return incomparable(key, { id: recorded?.id ?? '' });
}

/** Notes that our template cannot be compared. */
function noteDeep({ states, row }: Facts, { id }: ObservedTemplate): RecordedRow | undefined {
  const { recorded } = states;
  if (recorded?.id !== id) return undefined;
  const { ownership, value } = recorded;
  const body = { ...value, left: { edited: null, source: row.fingerprint } };
  return leftAlone(noteOf({ states, ownership }, body, undefined));
}

/** Returns why a change is planned. */
export function reasonFor({ op, value }: TemplateChange): string {
  if (op === 'create') return 'in the source; no template of this name on the platform';
  if (op === 'archive') return 'missing from the source (policy.absentTemplates: archive)';
  return `different on the platform: ${Object.keys(value.fields).join(', ')}`;
}

/** Returns the templates as the platform shows them, or as recorded if they were not read. */
function shownOf(
  states: TemplateStates,
  recorded: RecordedTemplate | undefined,
): ObservedTemplate[] {
  if (!isUnread(states)) return states.observed.map(({ value }) => value);
  return recorded && states.recorded?.id !== undefined ? [recorded.shown] : [];
}

/** Returns whether nothing of the platform was read for this template. */
function isUnread({ observed, sight }: TemplateStates): boolean {
  return observed.length === 0 && sight !== 'listed';
}

interface Absent extends Pick<Facts, 'states' | 'policy'> {
  recorded: RecordedTemplate | undefined;
  shown: ObservedTemplate[];
}

/** Decides rows 2 and 3. */
function absent({ states, recorded, shown, policy }: Absent, none: Decision): Decision {
  if (!states.certified || !states.recorded || !recorded || states.sight === 'assumed') return none;
  const now = shown.find((template) => template.id === states.recorded?.id);
  if (!now) return { ...none, forgets: [states.key] };
  if (policy.absentTemplates === 'keep' || now.fields.status === 'archived') return none;
  if (recorded.undone?.source === null) return { ...none, problems: [putBack(states.key)] };
  const fields = { status: 'archived' as const };
  const wanted = { ...recorded.sent, ...fields };
  const about = { target: now.id, fields, wanted, shown: now };
  return { ...none, changes: [templateChange(states.key, 'archive', about)] };
}

interface Facts {
  states: TemplateStates;
  row: DesiredTemplateRow;
  desired: TemplateFields;
  policy: TemplatePolicy;
}

interface Owned extends Facts {
  recorded: RecordedTemplate;
  ownership: Ownership;
}

/** Decides rows 4 to 6. */
function unrecorded(facts: Facts & { shown: ObservedTemplate[] }, none: Decision): Decision {
  const { states, row, policy, shown } = facts;
  const [first] = shown;
  if (!first) return { ...none, changes: creationOf(states.key, row.value, policy.tests) };
  if (shown.length > 1) return { ...none, problems: [doubled(states.key, shown)] };
  const replaced = policy.templates === 'overwrite' ? first : null;
  const found = { sent: {}, leftAlone: row.fingerprint, shown: first, replaced };
  return {
    ...owned({ ...facts, recorded: found, ownership: 'adopted', shown: first }, none),
    adopts: true,
  };
}

/** Decides rows 7 to 11. */
function owned(facts: Owned & { shown: ObservedTemplate | undefined }, none: Decision): Decision {
  const { states, row, desired, shown } = facts;
  const { left: _, ...recorded } = facts.recorded;
  if (!shown) return vanished({ ...facts, recorded }, none);
  const overwrite = facts.policy.templates === 'overwrite';
  const note = (body: RecordedTemplate, settled: boolean): RecordedRow =>
    noteOf(facts, body, settled ? row.fingerprint : undefined);
  const fields = difference(desired, shown.fields);
  const names = Object.keys(fields);
  const { undone, completes: __, ...known } = recorded;
  const done: RecordedTemplate = { ...known, sent: desired, leftAlone: null, shown };
  if (names.length === 0) {
    const { untested: why } = recorded;
    const problems = why === undefined ? [] : [untested(states.key, why)];
    return { ...none, note: note(done, why === undefined), problems };
  }
  if (undone?.source === row.fingerprint) {
    const seen = isEdited(recorded, shown, desired) ? recorded : { ...recorded, shown };
    return { ...none, note: leftAlone(note(seen, false)), problems: [putBack(states.key)] };
  }
  const { tests } = facts.policy;
  const update = updateOf(states.key, fields, { desired, recorded, shown, tests });
  if (isEdited(recorded, shown, desired)) {
    if (overwrite)
      return { ...none, note: note({ ...recorded, replaced: shown }, false), changes: [update] };
    const left = { ...recorded, left: { edited: names, source: row.fingerprint } };
    return { ...none, note: leftAlone(note(left, false)), problems: [edited(states.key, names)] };
  }
  if (canonicalJson(desired) === canonicalJson(recorded.sent))
    return { ...none, note: note(done, true) };
  const found = note({ ...recorded, shown }, false);
  const leave = recorded.leftAlone === row.fingerprint && !overwrite;
  return leave
    ? { ...none, note: found, problems: [differing(states.key, names)] }
    : { ...none, note: found, changes: [update] };
}

/**
 * Returns the row without the observed fingerprint. The recorded fields are not those that the
 * platform shows now, so the template must be read before it is changed.
 */
function leftAlone(row: RecordedRow): RecordedRow {
  return { ...row, shown: undefined };
}

/** Decides row 7. */
function vanished(facts: Owned, none: Decision): Decision {
  const { states, desired, recorded, policy } = facts;
  if (policy.templates === 'overwrite')
    return { ...none, changes: creationOf(states.key, desired, policy.tests) };
  const note = { ...noteOf(facts, recorded, undefined), id: undefined, shown: undefined };
  return { ...none, note, problems: [gone(states.key)] };
}

/**
 * Returns whether a stated field was edited on the platform. The platform may also reformat a
 * field, which leaves `updatedAt` unchanged.
 */
export function isEdited(
  recorded: RecordedTemplate,
  shown: ObservedTemplate,
  desired: TemplateFields,
): boolean {
  const stated = new Set(Object.keys(desired));
  const part = ({ fields }: ObservedTemplate): string =>
    canonicalJson(Object.fromEntries(Object.entries(fields).filter(([name]) => stated.has(name))));
  if (part(recorded.shown) === part(shown)) return false;
  return recorded.shown.updatedAt === null || recorded.shown.updatedAt !== shown.updatedAt;
}

function noteOf(
  { states, ownership }: Pick<Owned, 'states' | 'ownership'>,
  recorded: RecordedTemplate,
  desired: string | undefined,
): RecordedRow {
  return {
    kind: 'template',
    key: states.key,
    id: recorded.shown.id,
    ownership,
    body: canonicalJson(recorded),
    desired,
    ...sightOf(states, recorded.shown.id),
  };
}

/**
 * Returns the fingerprint and the time of the last reading, which is this one if it shows the
 * template.
 */
function sightOf(
  { observed, recorded, at }: TemplateStates,
  id: string,
): Pick<RecordedRow, 'shown' | 'seenAt'> {
  const row = observed.find((template) => template.id === id);
  return row
    ? { shown: row.fingerprint, seenAt: at }
    : { shown: recorded?.shown, seenAt: recorded?.seenAt ?? 0 };
}
