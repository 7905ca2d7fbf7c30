import { viewTemplate } from '../api/answer-views.ts';
import { isRecord, withBody, type QuirkRequest, type Quirk } from './quirk.ts';

/** Returns the number of templates on the page as `total`. */
export function templateTotal(): Quirk {
  return {
    turns(reply) {
      const { body } = reply.outcome;
      if (reply.route !== 'templates.list' || !isRecord(body)) return reply;
      const { templates } = body;
      return Array.isArray(templates)
        ? withBody(reply, { ...body, total: templates.length })
        : reply;
    },
  };
}

/** Lists this many templates per page unless the request states a limit. */
export function templateLimit(limit: string): Quirk {
  return {
    rewrites(question) {
      if (question.route !== 'templates.list' || question.query.has('limit')) return question;
      const query = new URLSearchParams([...question.query, ['limit', limit]]);
      return { ...question, query };
    },
  };
}

/** Replaces a template's variables with those named in its new content. */
export function contentRederivesVariables(): Quirk {
  return {
    turns(reply) {
      const { organization, outcome, question } = reply;
      const { status, about } = outcome;
      if (status >= 300 || !about?.templateId || !bringsContentAlone(question)) return reply;
      const row = organization?.templates.byId(about.templateId);
      if (!organization || !row) return reply;
      const found = JSON.stringify(row.content).matchAll(/\{\{\s*([A-Za-z_][\w.]*)\s*\}\}/g);
      const names = new Set([...found].map(([, name = '']) => name));
      const variables = [...names].map((name) => ({
        name,
        type: 'string' as const,
        defaultValue: null,
      }));
      organization.templates.change(row, { variables }, row.updatedAt);
      return withBody(reply, viewTemplate(organization, row));
    },
  };
}

/**
 * Returns whether a request contains content but no variables. A creation request cannot state
 * variables.
 */
function bringsContentAlone(question: QuirkRequest | undefined): boolean {
  if (question?.route !== 'templates.create' && question?.route !== 'templates.update')
    return false;
  const body: unknown = JSON.parse(question.body);
  if (!isRecord(body) || !Array.isArray(body['content'])) return false;
  return question.route === 'templates.create' || body['variables'] === undefined;
}
