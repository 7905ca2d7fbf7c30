/**
 * Converts template files to canonical form, and checks them before anything is sent
 * (docs/sources/directory.md).
 */
import { isTooDeep, mostLevels } from '../../domain/values/lossless-json.ts';
import { canonicalJson, fingerprint, type DesiredRow, type Fault } from '../../domain/record.ts';
import { templateUpdateBody } from '../../platform/request-schemas.ts';
import type { TemplateFields } from './template-state.ts';

const known = templateUpdateBody.strict().required({ name: true });

/**
 * Returns one template file in canonical form; `invalid` states why it cannot be used. Never
 * throws.
 */
export function desireTemplate(value: Record<string, unknown>, place: string): DesiredRow {
  const { key: stated, ...rest } = value;
  const key = typeof stated === 'string' ? stated : '';
  const isDeep = isTooDeep(rest);
  const parsed = known.safeParse({ name: key, ...(isDeep ? {} : rest) });
  const found = parsed.success ? undeclared(parsed.data) : schemaFault(parsed.error.issues[0]);
  const fault = isDeep ? tooDeep : found;
  const body = canonicalJson(parsed.success ? parsed.data : { name: key });
  return {
    kind: 'template',
    id: key,
    key: key === '' ? undefined : key,
    alias: parsed.success ? parsed.data.name : key,
    place,
    body,
    fingerprint: fingerprint(body),
    wants: true,
    presence: 'present',
    invalid: key === '' ? noKey : fault,
  };
}

const noKey: Fault = {
  cause: 'template-invalid',
  reason: 'has no key',
  fix: 'give the file a name, or the record a key',
};

const tooDeep: Fault = {
  cause: 'template-invalid',
  reason: `is nested more than ${mostLevels} levels deep`,
  fix: 'nest the content less deeply in the file',
};

interface Issue {
  path: PropertyKey[];
  message: string;
  code: string;
}

/** Returns the fault for a failed schema check. */
function schemaFault(issue: Issue | undefined): Fault {
  const cause = 'template-invalid';
  const field = issue?.path.map(String).join('.') ?? '';
  const names = Object.keys(templateUpdateBody.shape).join(', ');
  if (issue?.code === 'unrecognized_keys') {
    return { cause, reason: issue.message, fix: `a template has the fields ${names}` };
  }
  const reason = `${field}: ${issue?.message ?? 'is not valid'}`;
  return { cause, reason, fix: 'correct it in the file' };
}

const placeholder = /\{\{\{?\s*([A-Za-z_][\w.]*)\s*\}?\}\}/g;

/**
 * Returns the fault of a template that uses a variable without declaring it, which would leave a
 * gap in the mail. A file that declares no variables has no such fault, because the platform
 * derives them from the content.
 */
function undeclared(fields: TemplateFields): Fault | undefined {
  const missing = fields.variables ? undeclaredIn(fields) : [];
  if (missing.length === 0) return undefined;
  return {
    cause: 'template-invalid',
    reason: `uses ${missing.map((name) => `{{${name}}}`).join(', ')} without declaring it`,
    fix: 'add it to variables with name, type and defaultValue',
  };
}

/** Returns the variables that a template uses and does not declare, in the order of their use. */
export function undeclaredIn(fields: TemplateFields): string[] {
  const declared = new Set(fields.variables?.map((variable) => variable.name));
  const texts = JSON.stringify([fields.subject, fields.previewText, fields.content]);
  const used = [...texts.matchAll(placeholder)].map((match) => match[1] ?? '');
  return [...new Set(used.filter((name) => !declared.has(name)))];
}
