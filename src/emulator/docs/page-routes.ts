import type { Answer } from '../../domain/exchange.ts';
import { describeApi } from './openapi-document.ts';
import { pageOf } from './reference-page.ts';

const pages: Record<string, { type: string; write: () => string }> = {
  '/openapi.json': {
    type: 'application/json; charset=utf-8',
    write: () => JSON.stringify(describeApi()),
  },
  '/docs': { type: 'text/html; charset=utf-8', write: () => pageOf(describeApi()) },
};

/**
 * Answers GET /openapi.json and GET /docs, which need no key and have no limit; undefined for
 * another request.
 */
export function answerPage({ method, path }: { method: string; path: string }): Answer | undefined {
  const page = method === 'GET' && Object.hasOwn(pages, path) ? pages[path] : undefined;
  return page && { status: 200, headers: { 'content-type': page.type }, body: page.write() };
}
