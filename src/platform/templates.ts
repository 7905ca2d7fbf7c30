/** Templates (specification, "Endpoints", Templates). */
import {
  template,
  templateList,
  testSend,
  type Template,
  type TemplateList,
} from './answer-schemas.ts';
import type { Caller, CallOptions } from './api-call.ts';
import { operations } from './operations.ts';
import { paged, type Paged } from './paging.ts';
import type { TemplateCreateBody, TemplateUpdateBody, TestSendBody } from './request-schemas.ts';

export interface Templates extends Paged<object, TemplateList, Template> {
  /**
   * GET /api/template/v1/list: one page, newest first, the archived ones too; names are not unique.
   * `total` may count this page only.
   */
  list(query: { page: number; limit: number }, options?: CallOptions): Promise<TemplateList>;
  /** POST /api/template/v1/create; never sent twice: any failure but a refusal is unknown. */
  create(body: TemplateCreateBody, options?: CallOptions): Promise<Template>;
  /**
   * PUT /api/template/v1/{id}; only the fields given change. Content that changes without variables
   * makes the platform derive them anew: give both.
   */
  update(id: string, body: TemplateUpdateBody, options?: CallOptions): Promise<Template>;
  /**
   * POST /api/template/v1/{id}/test sends one email to `to`, the template's variables resolved.
   * Never sent twice: after any failure but a refusal the email may be on its way. 'unclear' when
   * the answer does not say `success: true`.
   */
  test(id: string, body: TestSendBody, options?: CallOptions): Promise<'sent' | 'unclear'>;
}

export function createTemplates({ call }: Caller): Templates {
  const expected = 'a template';
  const list: Templates['list'] = async ({ page, limit }, options) => {
    const operation = operations.listTemplates;
    const query = { page, limit };
    const listed = await call(
      { operation, query, schema: templateList, expected: 'a list of templates' },
      options,
    );
    return listed.value;
  };
  return {
    ...paged({ list, rowsOf: (page) => page.templates }),
    list,
    async create(body, options) {
      const operation = operations.createTemplate;
      return (await call({ operation, body, schema: template, expected }, options)).value;
    },
    async update(id, body, options) {
      const operation = operations.updateTemplate;
      return (await call({ operation, id, body, schema: template, expected }, options)).value;
    },
    async test(id, body, options) {
      const operation = operations.testTemplate;
      const addresses = [body.to, body.fromEmail ?? ''];
      const sent = await call(
        { operation, id, body, addresses, schema: testSend, expected: 'the answer to a test send' },
        options,
      );
      return sent.value.success === true ? 'sent' : 'unclear';
    },
  };
}
