/** The forms of a template: desired, checked before anything is sent, observed and recorded. */
import { z } from 'zod';
import {
  templateStatus,
  templateVariable,
  templateUpdateBody,
} from '../../platform/request-schemas.ts';
import type { Template } from '../../platform/answer-schemas.ts';
import { isTooDeep, mostLevels, type Decoded, decoder } from '../../domain/stored-json.ts';
import type { Change } from '../../domain/change.ts';
import {
  canonicalJson,
  fingerprint,
  type DesiredRow,
  type ObservedRow,
  type RecordedRow,
  type Fault,
  type Key,
} from '../../domain/record.ts';

/** The fields that a source may state. Only these are compared and sent. */
const templateFields = z.object({
  name: z.string(),
  description: z.string().optional(),
  subject: z.string().optional(),
  fromEmail: z.string().optional(),
  replyTo: z.string().optional(),
  previewText: z.string().optional(),
  content: z.array(z.unknown()).optional(),
  variables: z.array(templateVariable).optional(),
  status: templateStatus.optional(),
});
export type TemplateFields = z.infer<typeof templateFields>;

/** The fields of a template, of which a change or a version may lack any. */
export const someFields = templateFields.partial();
export type SomeFields = z.infer<typeof someFields>;

/** The fields as the platform formats them. A status or a type may be a word unknown to us. */
const platformFields = someFields.extend({
  status: z.string().optional(),
  variables: z.array(templateVariable.extend({ type: z.string() })).optional(),
});

const observedBody = z.object({
  id: z.string(),
  fields: platformFields,
  updatedAt: z.string().nullable(),
  /** Whether the content is omitted because it is nested too deeply to be compared. */
  tooDeep: z.literal(true).optional(),
});
export type ObservedTemplate = z.infer<typeof observedBody>;
export type ShownFields = ObservedTemplate['fields'];

/**
 * While a version stands that `undo` put back: its run, and what the source stated (null: none).
 */
const undone = z.object({ run: z.string(), source: z.string().nullable() });

const recordedBody = z.object({
  /** The fields that the source stated when we last wrote all of them. */
  sent: someFields,
  /** The fingerprint of the desired state that an adopted template differed from when left. */
  leftAlone: z.string().nullable(),
  /** The template as shown after that. The platform's formatting is no edit. */
  shown: observedBody,
  /** The template as the platform showed it before we last overwrote an edit. */
  replaced: observedBody.nullable(),
  undone: undone.optional(),
  /** Set until a creation's last step is done, however the first one was answered. */
  completes: z.literal(true).optional(),
  /** Why no test could be sent after the last change. */
  untested: z.string().optional(),
  /**
   * Why the template was left alone when it was last seen: the fields that were edited there, null
   * if it cannot be compared; and the fingerprint of what the source stated. `shown` is older.
   */
  left: z.object({ edited: z.array(z.string()).nullable(), source: z.string() }).optional(),
  /** Both sides as they were last read, if it was left as it is although they differ. */
  differs: z.object({ source: someFields, platform: platformFields }).optional(),
});

const changeBody = z.object({
  fields: someFields,
  wanted: someFields,
  undone: undone.optional(),
  /** Set in a creation that a second step completes. */
  begins: z.literal(true).optional(),
  /** next: a change of its own publishes the template afterwards. now: this one, after a test. */
  publish: z.enum(['next', 'now']).optional(),
});
export type RecordedTemplate = z.infer<typeof recordedBody>;

export type DesiredTemplateRow = Decoded<DesiredRow, TemplateFields>;
export type ObservedTemplateRow = Decoded<ObservedRow, ObservedTemplate>;
export type RecordedTemplateRow = Decoded<RecordedRow, RecordedTemplate>;
export type TemplateChange = Decoded<Change, z.infer<typeof changeBody>>;

/** The facts about one template that a decision needs. */
export interface TemplateStates {
  key: Key;
  /** The source records with this key, including invalid ones. */
  desired: readonly DesiredTemplateRow[];
  recorded: RecordedTemplateRow | undefined;
  /** The row of another key that the source no longer has, if the platform shows the same id. */
  former: RecordedTemplateRow | undefined;
  /** The platform's templates with the recorded id or, without one, with the name. */
  observed: readonly ObservedTemplateRow[];
  /** listed: what was read is all there is. assumed: not read; the recorded state counts. */
  sight: 'listed' | 'assumed';
  certified: boolean;
  /** When the reading of the platform began, by our clock, in milliseconds since the epoch. */
  at: number;
}

export const decodeTemplate = {
  desired: decoder(templateFields),
  observed: decoder(observedBody),
  recorded: decoder(recordedBody),
  change: decoder(changeBody),
};

type Unread = Record<'where' | 'broken' | 'fix', string>;

/** Returns the row of a file or record that cannot be read. It names no template. */
export function unreadTemplate({ where: place, broken: reason, fix }: Unread): DesiredTemplateRow {
  const row = desireTemplate({}, place);
  const invalid = { cause: 'unreadable-record', reason, fix } as const;
  return { ...row, fingerprint: '', wants: false, invalid };
}

/** Returns a platform template in canonical form. Its fingerprint excludes `updatedAt`. */
export function observeTemplate(template: Template): ObservedTemplateRow {
  const tooDeep = isTooDeep(template.content);
  const shown: ObservedTemplate = {
    id: template.id,
    fields: shownFields(tooDeep ? { ...template, content: undefined } : template),
    tooDeep: tooDeep || undefined,
    updatedAt: template.updatedAt ?? null,
  };
  const { updatedAt: _, ...compared } = shown;
  return decodeTemplate.observed({
    kind: 'template',
    id: template.id,
    alias: template.name,
    body: canonicalJson(shown),
    fingerprint: fingerprint(canonicalJson(compared)),
    createdAt: undefined,
  });
}

const names = Object.keys(templateFields.shape);

function shownFields({ variables, ...template }: Template): ShownFields {
  const stated = Object.entries(template).filter(
    ([name, value]) => names.includes(name) && value !== null && value !== undefined,
  );
  const declared = variables?.map(({ name, type, defaultValue }) => ({
    name,
    type: type ?? 'string',
    defaultValue: defaultValue ?? null,
  }));
  return observedBody.shape.fields.parse({
    ...Object.fromEntries(stated),
    ...(declared && { variables: declared }),
  });
}

/** Returns the names of the wanted fields that differ. */
export function differing(wanted: SomeFields, shown: ShownFields): string[] {
  const differs = (name: string): boolean =>
    canonicalJson(Reflect.get(wanted, name) ?? null) !==
    canonicalJson(Reflect.get(shown, name) ?? null);
  return Object.keys(wanted).filter(differs);
}

/** Returns the fields to send, which differ; content and variables always come together. */
export function difference(wanted: SomeFields, shown: ShownFields): SomeFields {
  const changed = new Set(differing(wanted, shown));
  if (changed.has('content') && wanted.variables) changed.add('variables');
  if (changed.has('variables') && wanted.content) changed.add('content');
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => changed.has(name)));
}

const known = templateUpdateBody.strict().required({ name: true });

/** Returns a template file in canonical form, or why it is `invalid`. Never throws. */
export function desireTemplate(value: Record<string, unknown>, place: string): DesiredTemplateRow {
  const { key: stated, ...rest } = value;
  const key = typeof stated === 'string' ? stated : '';
  const isDeep = isTooDeep(rest);
  const parsed = known.safeParse({ name: key, ...(isDeep ? {} : rest) });
  const body = canonicalJson(parsed.success ? parsed.data : { name: key });
  const fault = (): Fault | undefined => {
    if (key === '') return invalid('has no key', 'give the file a name, or the record a key');
    if (isDeep) {
      const reason = `is nested more than ${mostLevels} levels deep`;
      return invalid(reason, 'nest the content less deeply in the file');
    }
    if (parsed.success) {
      // A variable that is not declared would leave a gap in the mail. A file that declares none
      // has no such fault, because the platform derives them from the content.
      const missing = parsed.data.variables ? undeclaredIn(parsed.data) : [];
      if (missing.length === 0) return undefined;
      const names = missing.map((name) => `{{${name}}}`).join(', ');
      const fix = 'add it to variables with name, type and defaultValue';
      return invalid(`uses ${names} without declaring it`, fix);
    }
    const [issue] = parsed.error.issues;
    if (issue?.code === 'unrecognized_keys') {
      const names = Object.keys(templateUpdateBody.shape).join(', ');
      return invalid(issue.message, `a template has the fields ${names}`);
    }
    const field = issue?.path.map(String).join('.') ?? '';
    return invalid(`${field}: ${issue?.message ?? 'is not valid'}`, 'correct it in the file');
  };
  return decodeTemplate.desired({
    kind: 'template',
    id: key,
    key: key === '' ? undefined : key,
    alias: parsed.success ? parsed.data.name : key,
    place,
    body,
    fingerprint: fingerprint(body),
    wants: true,
    presence: 'present',
    invalid: fault(),
  });
}

/**
 * Returns the rows, invalid if they share a name. The platform would take both, but an unanswered
 * creation, or a template that no snapshot knows, is found by its name.
 */
export function refuseSharedNames(rows: readonly DesiredTemplateRow[]): DesiredTemplateRow[] {
  const valid = rows.filter((row) => !row.invalid);
  return rows.map((row) => {
    const others = valid.filter(({ alias, key }) => alias === row.alias && key !== row.key);
    if (row.invalid || others.length === 0) return row;
    const places = others.map(({ place }) => place).join(', ');
    return { ...row, invalid: invalid(`has the name of ${places}`, 'give each its own name') };
  });
}

function invalid(reason: string, fix: string): Fault {
  return { cause: 'template-invalid', reason, fix };
}

const placeholder = /\{\{\{?\s*([A-Za-z_][\w.]*)\s*\}?\}\}/g;

/** Returns the variables that a template uses and does not declare, in the order of their use. */
export function undeclaredIn(fields: TemplateFields): string[] {
  const declared = new Set(fields.variables?.map((variable) => variable.name));
  const texts = JSON.stringify([fields.subject, fields.previewText, fields.content]);
  const used = [...texts.matchAll(placeholder)].map((match) => match[1] ?? '');
  return [...new Set(used.filter((name) => !declared.has(name)))];
}
