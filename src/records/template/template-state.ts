/**
 * The forms of a template: desired, observed, recorded; what staging and the snapshot hold of it.
 */
import { z } from 'zod';
import { templateStatus, templateVariable } from '../../platform/request-schemas.ts';
import type { Template } from '../../platform/answer-schemas.ts';
import { isTooDeep } from '../../domain/values/lossless-json.ts';
import type { Change } from '../../domain/change.ts';
import {
  canonicalJson,
  fingerprint,
  type DesiredRow,
  type ObservedRow,
  type RecordedRow,
} from '../../domain/record.ts';
import { type Decoded, decoder } from '../decoded-rows.ts';
import type { States } from '../record-type.ts';

/** The fields a source may state, and the only ones that are ever compared or sent. */
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

const someFields = templateFields.partial();
export type SomeFields = z.infer<typeof someFields>;

const observedBody = z.object({
  id: z.string(),
  /** As the platform shows them, in its own spelling; a status or type may be a word of its own. */
  fields: someFields.extend({
    status: z.string().optional(),
    variables: z.array(templateVariable.extend({ type: z.string() })).optional(),
  }),
  updatedAt: z.string().nullable(),
  /** Its content is nested too deeply to be compared, and is left out. */
  tooDeep: z.literal(true).optional(),
});
export type ObservedTemplate = z.infer<typeof observedBody>;
export type ShownFields = ObservedTemplate['fields'];

const recordedBody = z.object({
  /** What the source stated when we last wrote all of it. */
  sent: someFields,
  /** Fingerprint of the desired state from which an adopted template differs and was left alone. */
  leftAlone: z.string().nullable(),
  /** What the platform answered or showed after that; its own spelling of it is no edit. */
  shown: observedBody,
  /** The platform's version of the fields before we last overwrote an edit made there. */
  replaced: observedBody.nullable(),
});

/** What a change of a template carries: the fields to send, and all that the source states. */
const changeBody = z.object({
  fields: someFields,
  wanted: someFields,
});
export type RecordedTemplate = z.infer<typeof recordedBody>;

/** A template's rows, and its changes, with the values of their bodies. */
export type DesiredTemplateRow = Decoded<DesiredRow, TemplateFields>;
export type RecordedTemplateRow = Decoded<RecordedRow, RecordedTemplate>;
export type TemplateChange = Decoded<Change, z.infer<typeof changeBody>>;
export type TemplateStates = States<{
  desired: DesiredTemplateRow;
  observed: Decoded<ObservedRow, ObservedTemplate>;
  recorded: RecordedTemplateRow;
}>;

/** Adds the values to the rows of a template. */
export const decodeTemplate = {
  desired: decoder(templateFields),
  observed: decoder(observedBody),
  recorded: decoder(recordedBody),
  change: decoder(changeBody),
};

/** The body of a file or record that cannot be read: it names no template. */
export const unreadBody = canonicalJson({ name: '' } satisfies TemplateFields);

/** Canonical form of a platform template. */
export function observeTemplate(template: Template): ObservedRow {
  const tooDeep = isTooDeep(template.content);
  const shown: ObservedTemplate = {
    id: template.id,
    fields: shownFields(tooDeep ? { ...template, content: undefined } : template),
    tooDeep: tooDeep || undefined,
    updatedAt: template.updatedAt ?? null,
  };
  const { updatedAt: _, ...compared } = shown;
  return {
    kind: 'template',
    id: template.id,
    alias: template.name,
    body: canonicalJson(shown),
    fingerprint: fingerprint(canonicalJson(compared)),
    createdAt: undefined,
  };
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

/**
 * Of the wanted fields, those that differ from what is shown; content and variables go together.
 */
export function difference(wanted: SomeFields, shown: ShownFields): SomeFields {
  const differs = (name: string): boolean =>
    canonicalJson(Reflect.get(wanted, name) ?? null) !==
    canonicalJson(Reflect.get(shown, name) ?? null);
  const changed = new Set(Object.keys(wanted).filter(differs));
  if (changed.has('content') && wanted.variables) changed.add('variables');
  if (changed.has('variables') && wanted.content) changed.add('content');
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => changed.has(name)));
}
