import { count, flag, refusal, text, time, type Sections } from './sentence.ts';

/** API key ("Resources and their fields"). */
const key = {
  id: text,
  name: text,
  start: text,
  prefix: text,
  enabled: flag,
  requestCount: count,
  createdAt: time,
  updatedAt: time,
  permissions: text,
  createdBy: { id: text, name: text, email: text },
};
const enable = 'POST /api/api-key/v1/enable/key_off';
const off = { 'x-api-key': 'key_live_off' };
const listed = 'GET /api/template/v1/list';

export const apiKeys: Sections = {
  'API keys, enable': [
    {
      says: 'enables a key: the API key object with enabled true, no event',
      ask: enable,
      status: 200,
      answer: { ...key, id: 'key_off', enabled: true },
    },
    {
      says: 'start: the leading characters of the key',
      ask: enable,
      status: 200,
      has: { start: expectStart('key_live_off') },
    },
    {
      says: 'a disabled key is refused',
      ask: listed,
      headers: off,
      status: 401,
      needs: 'world',
      answer: refusal(),
    },
    {
      says: 'and is accepted once it is enabled',
      first: [{ ask: enable }],
      ask: listed,
      headers: off,
      status: 200,
      needs: 'world',
    },
    {
      says: 'a disabled key cannot enable itself',
      ask: enable,
      headers: off,
      status: 401,
      answer: refusal(),
    },
    {
      says: 'an enabled key stays enabled',
      first: [{ ask: enable }],
      ask: enable,
      status: 200,
      has: { enabled: true },
    },
    {
      says: 'requestCount counts the requests of the key',
      first: [
        { ask: enable },
        { ask: listed, headers: off },
        { ask: listed, headers: off },
        { ask: listed, headers: off },
      ],
      ask: enable,
      status: 200,
      has: { requestCount: 3 },
    },
    ...['key_that_never_was', 'key_b'].map((id) => ({
      says: `404 for ${id}`,
      ask: `POST /api/api-key/v1/enable/${id}`,
      status: 404,
      answer: refusal(),
    })),
  ],
};

function expectStart(secret: string) {
  return {
    asymmetricMatch: (start: unknown) =>
      typeof start === 'string' && start !== '' && start !== secret && secret.startsWith(start),
  };
}
