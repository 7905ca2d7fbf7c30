import type {
  TemplateCreateBody,
  TemplateListQuery,
  TemplateUpdateBody,
} from '../../platform/request-schemas.ts';
import { refuse, type ApiOutcome } from '../shared/api-answer.ts';
import type { Organization } from '../store/organization.ts';
import { viewTemplate } from './answer-views.ts';
import type { Call } from './operation.ts';

/** Answers GET /api/template/v1/list: newest first, archived ones too. */
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

/** Answers POST /api/template/v1/create: names need not be unique. */
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
 * Answers PUT /api/template/v1/{id}: only the given fields change; any status may follow any other,
 * and no version is counted.
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

/** Returns the refusal for an unknown template. */
export function templateNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Template not found', {
    why: `The organization has no template with the id "${id}".`,
    fix: 'List the templates to find its id.',
  });
  return { ...refusal, about: { templateId: id } };
}
