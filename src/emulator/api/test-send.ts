import type { TestSendBody } from '../../platform/request-schemas.ts';
import { type ApiOutcome, timestamp } from '../shared/api-answer.ts';
import type { Organization } from '../store/organization.ts';
import type { TemplateRow } from '../shared/row-types.ts';
import type { Call } from './operation.ts';
import { templateNotFound } from './templates.ts';

/**
 * Answers POST /api/template/v1/{id}/test: puts the email into the outbox. The template gives what
 * the request leaves out.
 */
export function testTemplate(
  organization: Organization,
  { id, body }: Call<undefined, TestSendBody>,
): ApiOutcome {
  const template = organization.templates.byId(id);
  if (template === undefined) return templateNotFound(id);
  const resolve = resolver(template, body.variables ?? {});
  organization.outbox.add({
    at: timestamp(organization.now()),
    templateId: id,
    to: body.to,
    fromEmail: body.fromEmail ?? template.fromEmail,
    subject: resolve(body.subject ?? template.subject),
    html: body.html === undefined ? null : resolve(body.html),
    content: template.content.map((element) => mapTexts(element, resolve)),
  });
  return { status: 200, body: { success: true }, about: { templateId: id } };
}

/**
 * Returns a function that replaces each {{name}} with the given value, else with the variable's
 * default. One without either stays, so that a reader of the email sees what is missing.
 */
function resolver(template: TemplateRow, given: Record<string, unknown>): (text: string) => string {
  const values = new Map<string, unknown>([
    ...template.variables.map(({ name, defaultValue }): [string, unknown] => [name, defaultValue]),
    ...Object.entries(given).filter(([, value]) => value !== null),
  ]);
  return (text) =>
    text.replace(/\{\{\s*([^{}]*?)\s*\}\}/g, (placeholder, name: string) => {
      const value = values.get(name) ?? placeholder;
      return typeof value === 'string' ? value : JSON.stringify(value);
    });
}

/**
 * Returns the value with every text in it changed: the specification does not show what content
 * elements are.
 */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((inner) => mapTexts(inner, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mapTexts(inner, change)]),
  );
}
