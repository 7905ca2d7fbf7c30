/** API keys (specification, "Endpoints", API keys). */
import { apiKey, type ApiKey } from './answer-schemas.ts';
import type { Caller, CallOptions } from './api-call.ts';
import { operations } from './operations.ts';

export interface ApiKeys {
  /**
   * POST /api/api-key/v1/enable/{id}; enabling an enabled key changes nothing, so it may be
   * repeated. A disabled key cannot enable itself: Rejected with 401.
   */
  enable(id: string, options?: CallOptions): Promise<ApiKey>;
}

export function createApiKeys({ call }: Caller): ApiKeys {
  return {
    async enable(id, options) {
      const operation = operations.enableApiKey;
      const expected = 'an API key';
      return (await call({ operation, id, schema: apiKey, expected }, options)).value;
    },
  };
}
