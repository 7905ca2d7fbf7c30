import type { CrmRequest } from '../shared/crm-request.ts';
import type { TrytonOptions } from './options.ts';

/** A call of JSON-RPC. With an id, what fails is told in the answer, and not by its status. */
export function questionOf(
  { url, database }: TrytonOptions,
  method: string,
  params: readonly unknown[],
): CrmRequest {
  return {
    address: new URL(`/${encodeURIComponent(database)}/`, url).href,
    body: { type: 'application/json', text: JSON.stringify({ id: 0, method, params }) },
  };
}
