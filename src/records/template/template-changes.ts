/** Builds the changes to a template. */
import { guardOf, type Change, type ChangeReason } from '../../domain/change.ts';
import { canonicalJson, fingerprint, type Key } from '../../domain/record.ts';
import { templateCreateBody } from '../../platform/request-schemas.ts';
import {
  difference,
  type ObservedTemplate,
  type RecordedTemplate,
  type SomeFields,
  type TemplateChange,
  type TemplateFields,
} from './template-state.ts';

/** What an update is based on. `tests`: whether a test is sent before a template is published. */
interface Updating {
  desired: TemplateFields;
  recorded: RecordedTemplate;
  shown: ObservedTemplate;
  tests: boolean | undefined;
}

/**
 * Returns the change that writes these fields. A template of which tests are sent is published by a
 * change of its own, after everything else has been written. No guard counts a change that
 * completes a creation, because it replaces nothing that was in use.
 */
export function updateOf(key: Key, fields: SomeFields, updating: Updating): Change {
  const change = writing(key, fields, updating);
  return updating.recorded.completes ? { ...change, guard: undefined } : change;
}

function writing(
  key: Key,
  fields: SomeFields,
  { desired, recorded, shown, tests }: Updating,
): Change {
  const about = { target: shown.id, fields, wanted: desired, shown };
  if (!tests || fields.status !== 'published') return templateChange(key, 'update', about);
  const others = unpublished(fields);
  if (Object.keys(others).length > 0) {
    const first = { fields: others, wanted: unpublished(desired), publish: 'next' as const };
    return templateChange(key, 'update', { ...about, ...first });
  }
  const op = recorded.completes ? 'complete' : 'update';
  return templateChange(key, op, { ...about, publish: 'now' });
}

function unpublished({ status: _, ...fields }: SomeFields): SomeFields {
  return fields;
}

/**
 * Returns the changes that create a template. Each step is journaled: first the fields that a
 * creation can set, then the rest.
 */
export function creationOf(key: Key, desired: TemplateFields, tests = false): Change[] {
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

/** Returns a change, with the version that it overwrites. */
export function templateChange(
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
