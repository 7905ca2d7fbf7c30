import { refuse, type ApiOutcome } from '../shared/api-answer.ts';
import type { Organization } from '../store/organization.ts';
import { viewKey } from './answer-views.ts';
import type { Call } from './operation.ts';

/**
 * Answers POST /api/api-key/v1/enable/{api_key_id}. An enabled key stays enabled; a revoked key is
 * unknown.
 */
export function enableKey(
  { keys, now }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const key = keys.byId(id);
  if (key === undefined || key.revoked) {
    const refusal = refuse(404, 'API key not found', {
      why: `The organization has no API key with the id "${id}".`,
      fix: "Look up the id of the key in the organization's dashboard.",
    });
    return { ...refusal, about: { keyId: id } };
  }
  if (!key.enabled) keys.change(key, { enabled: true }, now());
  return { status: 200, body: viewKey(key), about: { keyId: id } };
}
