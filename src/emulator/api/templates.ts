import type {
  TemplateCreateBody,
  TemplateListQuery,
  TemplateUpdateBody,
  TestSendBody,
} from '../../platform/request-schemas.ts';
import { type ApiOutcome, refuse, timestamp } from '../shared/api-answer.ts';
import type { Organization } from '../store/organization.ts';
import { viewTemplate } from './answer-views.ts';
import type { Call } from './operation.ts';
import type { TemplateRow } from '../shared/row-types.ts';

/**
 * Handles GET /api/template/v1/list. Templates are listed newest first, including archived ones.
 */
export function listTemplates(
  organization: Organization,
  { query: { page = 1, limit = 20 } }: Call<TemplateListQuery, undefined>,
): ApiOutcome {
  const listed = organization.templates.listed();
  const templates = listed.page(page, limit).map((row) => viewTemplate(organization, row));
  return {
    status: 200,
    body: { templates, total: listed.size, page, limit, event: 'template.list' },
  };
}

/** Handles POST /api/template/v1/create. Names need not be unique. */
export function createTemplate(
  organization: Organization,
  { body }: Call<undefined, TemplateCreateBody>,
): ApiOutcome {
  const template = organization.templates.add(body, organization.now());
  return {
    status: 200,
    body: viewTemplate(organization, template),
    about: { templateId: template.id },
  };
}

/**
 * Handles PUT /api/template/v1/{id}. Only the given fields change, any status may follow any other,
 * and the version number does not increase.
 */
export function updateTemplate(
  organization: Organization,
  { id, body }: Call<undefined, TemplateUpdateBody>,
): ApiOutcome {
  const template = organization.templates.byId(id);
  if (template === undefined) return templateNotFound(id);
  organization.templates.change(template, body, organization.now());
  return { status: 200, body: viewTemplate(organization, template), about: { templateId: id } };
}

/** Returns the error response for an unknown template. */
function templateNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Template not found', {
    why: `The organization has no template with the id "${id}".`,
    fix: 'List the templates to find its id.',
  });
  return { ...refusal, about: { templateId: id } };
}

/**
 * Handles POST /api/template/v1/{id}/test. Puts the email into the outbox. The template supplies
 * whatever the request omits.
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
 * Returns a function that replaces each {{name}} with the given value, or with the variable's
 * default. A placeholder with neither stays in the text, so that the email shows what is missing.
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
 * Returns the value with `change` applied to every text in it. All texts are changed because the
 * specification does not show what content elements look like.
 */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((inner) => mapTexts(inner, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mapTexts(inner, change)]),
  );
}
