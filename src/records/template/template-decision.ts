/**
 * Decides what to do about one template: the decision, the reason for a change, the problems, the
 * changes themselves, and how the changes of an earlier run to it are undone. All of it is pure.
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
import { storedJson, mostLevels } from '../../domain/stored-json.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import {
  canonicalJson,
  type Ownership,
  type RecordedRow,
  fingerprint,
  type Key,
} from '../../domain/record.ts';
import { type Decision, type Undone, changedLater, type Undoing } from '../decision.ts';
import {
  difference,
  differing,
  type DesiredTemplateRow,
  type ObservedTemplate,
  type RecordedTemplate,
  type RecordedTemplateRow,
  type TemplateChange,
  type TemplateFields,
  type TemplateStates,
  type SomeFields,
  decodeTemplate,
  someFields,
} from './template-state.ts';
import { guardOf, type Change, type ChangeReason, type DoneChange } from '../../domain/change.ts';
import { templateCreateBody } from '../../platform/request-schemas.ts';

/** The policy for templates that were edited, or that the source lacks. */
export interface TemplatePolicy {
  templates: 'keep' | 'overwrite';
  absentTemplates: 'keep' | 'archive';
  /** Whether a test is sent before a template is published. */
  tests?: boolean;
}

export function decideTemplate(states: TemplateStates, policy: TemplatePolicy): Decision {
  const none = { changes: [], note: undefined, adopts: false, forgets: [], problems: [] };
  return { ...none, ...decide(states, policy) };
}

function decide(states: TemplateStates, policy: TemplatePolicy): Partial<Decision> {
  const { key, recorded: own } = states;
  const known = own ?? states.former;
  const recorded = known?.value;
  // What was not read counts as recorded.
  const isUnread = states.observed.length === 0 && states.sight !== 'listed';
  const asRecorded = recorded && own?.id !== undefined ? [recorded.shown] : [];
  const shown = isUnread ? asRecorded : states.observed.map(({ value }) => value);
  const [row] = states.desired;
  if (!row) return own ? absent(states, own, shown, policy) : {};
  if (states.desired.length > 1 || row.invalid) return {};
  const source = row.fingerprint;
  // The problem for which the template was left alone stands if nothing was read since.
  const left = isUnread ? own?.value.left : undefined;
  if (left?.source === source && !left.edited) {
    return { problems: [incomparable(key, own?.id ?? '')] };
  }
  if (left?.source === source && left.edited && policy.templates === 'keep') {
    return { problems: [edited(key, left.edited)] };
  }
  const deep = shown.find((template) => template.tooDeep);
  if (deep) {
    // Notes that our template cannot be compared.
    const body = own?.id === deep.id && { ...own.value, left: { edited: null, source } };
    const note = body ? leftAlone(noteOf(states, own.ownership, body, undefined)) : undefined;
    return { note, problems: [incomparable(key, deep.id)] };
  }
  const facts = { states, row, policy };
  const ours = shown.find((template) => template.id === known?.id);
  const [first] = shown;
  if (recorded && (ours || !first)) {
    const { ownership } = known;
    const decision = owned({ ...facts, recorded, ownership, shown: ours });
    return { ...decision, forgets: own ? [] : [known.key] };
  }
  if (!first) return { changes: creationOf(key, row.value, policy.tests) };
  if (shown.length > 1) {
    const ids = shown.map(({ id }) => id).toSorted();
    const reason = `${ids.length} templates on the platform have this name: ${ids.join(', ')}`;
    return { problems: [problem(key, 'template-name-shared', reason)] };
  }
  const replaced = policy.templates === 'overwrite' ? first : null;
  const found = { sent: {}, leftAlone: source, shown: first, replaced };
  return {
    ...owned({ ...facts, recorded: found, ownership: 'adopted', shown: first }),
    adopts: true,
  };
}

export function reasonFor({ op, value }: TemplateChange): string {
  if (op === 'create') return 'in the source; no template of this name on the platform';
  if (op === 'archive') return 'missing from the source (policy.absentTemplates: archive)';
  return `different on the platform: ${Object.keys(value.fields).join(', ')}`;
}

function absent(
  { key, certified, sight }: TemplateStates,
  { id, value: recorded }: RecordedTemplateRow,
  shown: readonly ObservedTemplate[],
  policy: TemplatePolicy,
): Partial<Decision> {
  if (!certified || sight === 'assumed') return {};
  const now = shown.find((template) => template.id === id);
  if (!now) return { forgets: [key] };
  if (policy.absentTemplates === 'keep' || now.fields.status === 'archived') return {};
  if (recorded.undone?.source === null) return { problems: [problem(key, 'template-undone')] };
  const fields = { status: 'archived' as const };
  const wanted = { ...recorded.sent, ...fields };
  const about = { target: now.id, fields, wanted, shown: now };
  return { changes: [templateChange(key, 'archive', about)] };
}

function owned({
  states,
  row,
  policy,
  ownership,
  shown,
  ...was
}: {
  states: TemplateStates;
  row: DesiredTemplateRow;
  policy: TemplatePolicy;
  recorded: RecordedTemplate;
  ownership: Ownership;
  shown: ObservedTemplate | undefined;
}): Partial<Decision> {
  const { key } = states;
  const { value: desired } = row;
  const { tests } = policy;
  const { left: _, differs: __, ...recorded } = was.recorded;
  const overwrite = policy.templates === 'overwrite';
  const note = (body: RecordedTemplate, settled: boolean): RecordedRow =>
    noteOf(states, ownership, body, settled ? row.fingerprint : undefined);
  if (!shown) {
    if (overwrite) return { changes: creationOf(key, desired, tests) };
    const gone = { ...leftAlone(note(recorded, false)), id: undefined };
    return { note: gone, problems: [problem(key, 'template-vanished')] };
  }
  const names = differing(desired, shown.fields);
  const { undone, completes: ___, ...known } = recorded;
  const done: RecordedTemplate = { ...known, sent: desired, leftAlone: null, shown };
  if (names.length === 0) {
    const { untested: why } = recorded;
    if (why === undefined) return { note: note(done, true) };
    const reason = `was changed, and no test could be sent: ${why}`;
    return { note: note(done, false), problems: [problem(key, 'template-untested', reason)] };
  }
  const differs = { source: desired, platform: shown.fields };
  if (undone?.source === row.fingerprint) {
    const seen = isEdited(recorded, shown, desired) ? recorded : { ...recorded, shown };
    const kept = leftAlone(note({ ...seen, differs }, false));
    return { note: kept, problems: [problem(key, 'template-undone')] };
  }
  const update = updateOf(key, desired, recorded, { shown, tests });
  if (isEdited(recorded, shown, desired)) {
    if (overwrite)
      return { note: note({ ...recorded, replaced: shown }, false), changes: [update] };
    const left = { ...recorded, differs, left: { edited: names, source: row.fingerprint } };
    return { note: leftAlone(note(left, false)), problems: [edited(key, names)] };
  }
  if (canonicalJson(desired) === canonicalJson(recorded.sent)) return { note: note(done, true) };
  if (recorded.leftAlone !== row.fingerprint || overwrite)
    return { note: note({ ...recorded, shown }, false), changes: [update] };
  const reason = `found on the platform with other ${names.join(', ')}; left as it is`;
  const kept = note({ ...recorded, shown, differs }, false);
  return { note: kept, problems: [problem(key, 'template-differs', reason)] };
}

/** Returns the row without its fingerprint, so that it is read before it is changed. */
const leftAlone = (row: RecordedRow): RecordedRow => ({ ...row, shown: undefined });

/** Returns whether a stated field was edited; formatting leaves `updatedAt` unchanged. */
function isEdited(recorded: RecordedTemplate, shown: ObservedTemplate, desired: TemplateFields) {
  const stated = new Set(Object.keys(desired));
  const part = ({ fields }: ObservedTemplate): string =>
    canonicalJson(Object.fromEntries(Object.entries(fields).filter(([name]) => stated.has(name))));
  if (part(recorded.shown) === part(shown)) return false;
  return recorded.shown.updatedAt === null || recorded.shown.updatedAt !== shown.updatedAt;
}

function noteOf(
  { key, observed, recorded: before, at }: TemplateStates,
  ownership: Ownership,
  recorded: RecordedTemplate,
  desired: string | undefined,
): RecordedRow {
  const { id } = recorded.shown;
  const row = observed.find((template) => template.id === id);
  const sight = row
    ? { shown: row.fingerprint, seenAt: at }
    : { shown: before?.shown, seenAt: before?.seenAt ?? 0 };
  return { kind: 'template', key, id, ownership, body: canonicalJson(recorded), desired, ...sight };
}

/** What may be wrong with a template: the class, the words that all such problems share, a fix. */
const problems = {
  'template-name-shared': [
    'rejected',
    'several templates on the platform have this name',
    'rename or remove all but one of them on the platform',
  ],
  'template-too-deep': [
    'rejected',
    `the content on the platform is nested more than ${mostLevels} levels deep and cannot be compared`,
    'nest it less deeply on the platform, or remove it there',
  ],
  'template-differs': [
    'conflict',
    'found on the platform with other fields; left as it is',
    'it is written when the source next changes, or set policy.templates to overwrite',
  ],
  'template-edited': [
    'conflict',
    'was edited on the platform; left as it is',
    'take the edit into the source, or set policy.templates to overwrite',
  ],
  'template-vanished': [
    'conflict',
    'vanished on the platform; not made again',
    'remove it from the source, or set policy.templates to overwrite',
  ],
  'template-undone': [
    'conflict',
    '`undo` put an earlier version back, and the source has not changed since',
    'nothing, if that is as it should be; otherwise change the source, or undo the undo',
  ],
  'template-untested': [
    'rejected',
    'was changed, and no test could be sent',
    'send one by `crm-mirror platform template test`, and change the template again if it is wrong',
  ],
} as const;

function problem(key: Key, cause: keyof typeof problems, reason?: string): RecordProblem {
  const [name, about, fix] = problems[cause];
  const said = reason === undefined ? { reason: about } : { about, reason };
  return { kind: 'template', key, class: name, part: '', cause, ...said, fix };
}

function incomparable(key: Key, id: string): RecordProblem {
  const [, about] = problems['template-too-deep'];
  return problem(key, 'template-too-deep', about.replace('platform', `platform (${id})`));
}

function edited(key: Key, fields: readonly string[]): RecordProblem {
  const reason = `was edited on the platform (${fields.join(', ')}); left as it is`;
  return problem(key, 'template-edited', reason);
}

/**
 * Returns the change that writes these fields. A template of which tests are sent is published by a
 * change of its own, after everything else has been written. No guard counts a change that
 * completes a creation, because it replaces nothing that was in use.
 */
function updateOf(
  key: Key,
  desired: TemplateFields,
  recorded: RecordedTemplate,
  { shown, tests }: { shown: ObservedTemplate; tests: boolean | undefined },
): Change {
  const fields = difference(desired, shown.fields);
  const about = { target: shown.id, fields, wanted: desired, shown };
  const unguarded = recorded.completes ? { guard: undefined } : {};
  const update = (op: Change['op'], more: Partial<TemplateChange['value']> = {}): Change => ({
    ...templateChange(key, op, { ...about, ...more }),
    ...unguarded,
  });
  if (!tests || fields.status !== 'published') return update('update');
  const others = unpublished(fields);
  if (Object.keys(others).length > 0) {
    return update('update', { fields: others, wanted: unpublished(desired), publish: 'next' });
  }
  return update(recorded.completes ? 'complete' : 'update', { publish: 'now' });
}

const unpublished = ({ status: _, ...fields }: SomeFields): SomeFields => fields;

/** Returns the two journaled steps of a creation: what it can set, and the rest. */
function creationOf(key: Key, desired: TemplateFields, tests = false): Change[] {
  const isLater = tests && desired.status === 'published';
  const wanted = isLater ? unpublished(desired) : desired;
  const publish = isLater ? ('next' as const) : undefined;
  const first = templateCreateBody.parse(desired);
  const rest = difference(wanted, first);
  if (Object.keys(rest).length === 0)
    return [templateChange(key, 'create', { fields: first, wanted, publish })];
  return [
    templateChange(key, 'create', { fields: first, wanted: first, publish, begins: true }),
    templateChange(key, 'complete', { fields: rest, wanted, publish }),
  ];
}

function templateChange(
  key: string,
  op: Change['op'],
  {
    target,
    shown,
    ...body
  }: TemplateChange['value'] & { target?: string; shown?: ObservedTemplate },
): Change {
  // No guard counts a creation or its second step, because neither replaces anything.
  const guard = guardOf({ kind: 'template', op });
  const rest = { part: '', target, body: canonicalJson(body), phase: 0, guard } as const;
  const why: ChangeReason = {
    rule: ruleOf[op] ?? op,
    before: shown ? fingerprint(canonicalJson(shown.fields)) : 'none',
    after: fingerprint(canonicalJson(body.wanted)),
  };
  const before = shown && canonicalJson(shown.fields);
  return { kind: 'template', key, op, ...rest, why, before };
}

/** The rules by which templates change, as the audit log names them. */
const ruleOf: Partial<Record<Change['op'], string>> = {
  create: 'missing-on-platform',
  complete: 'missing-on-platform',
  update: 'different-on-platform',
  archive: 'missing-from-source',
};

/**
 * Returns the inverse of what an earlier run did to one template, or why it cannot be undone. The
 * function is pure. The first matching line applies:
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
export function undoTemplate(states: TemplateStates, { run, changes }: Undoing): Undone {
  const decision = { changes: [], note: undefined, adopts: false, forgets: [], problems: [] };
  // The second step of a creation is undone with the first one.
  const all = changes.filter(({ op }) => op !== 'complete');
  const done = changes.at(-1);
  if (all.length === 0 || !done) return { decision, cannot: [] };
  const { op, part } = done;
  const refused = (rule: string, reason: string): Undone => {
    return { decision, cannot: [{ op, part, rule, reason }] };
  };
  if (done.later !== undefined) return { decision, cannot: [changedLater(done)] };
  const recorded = states.recorded?.value;
  const target = done.target ?? states.recorded?.id;
  const shown = states.observed.map(({ value }) => value).find(({ id }) => id === target);
  if (!recorded || !shown) return refused('template-gone', 'it is gone from the platform');
  const { value } = decodeTemplate.change(done);
  if (isEdited(recorded, shown, { ...value.wanted, name: value.wanted.name ?? '' })) {
    return refused('template-edited', 'it was edited on the platform since');
  }
  const fields = restored(all, shown);
  if (!fields) {
    const reason = 'the version before was not kept, or had a field empty that cannot be emptied';
    return refused('version-unknown', reason);
  }
  const source = states.desired[0]?.fingerprint ?? null;
  const about = { target: shown.id, fields, wanted: { ...recorded.sent, ...fields }, shown };
  const inverse = fields.status === 'archived' ? 'archive' : 'update';
  const made = templateChange(states.key, inverse, { ...about, undone: { run, source } });
  const change = { ...made, why: made.why && { ...made.why, rule: 'undo' } };
  return { decision: { ...decision, changes: [change] }, cannot: [] };
}

const emptiable: readonly string[] = ['description', 'fromEmail', 'replyTo', 'previewText'];

const replaced = storedJson<Record<string, unknown>>('a version of a template');

/** Returns the fields before one run's changes, oldest first; undefined if not all known. */
function restored(changes: readonly DoneChange[], shown: ObservedTemplate): SomeFields | undefined {
  if (changes.some(({ op }) => op === 'create')) return { status: 'archived' };
  const before = changes[0]?.before;
  if (before === undefined) return undefined;
  const version = replaced.decode(before);
  const sent = changes.flatMap((done) => Object.keys(decodeTemplate.change(done).value.fields));
  const entries = [...new Set(sent)].map((name) => {
    const empty = emptiable.includes(name) ? '' : undefined;
    return [name, version[name] ?? empty] as const;
  });
  if (shown.tooDeep || entries.some(([, value]) => value === undefined)) return undefined;
  const fields = someFields.safeParse(Object.fromEntries(entries));
  return fields.success ? fields.data : undefined;
}
