/** Sends requests to the API of one organization, with a token that is renewed when it expires. */
import { pathSegment } from '../../domain/address-part.ts';
import { observe } from '../../http/rate-limit-headers.ts';
import { createAsking, type Asking, type Said, type Surroundings } from '../shared/crm-request.ts';
import type { Grant, Grants } from './access-grant.ts';
import type { SalesforceOptions } from './options.ts';
import { errorOf, refusalOf } from './protocol/api-refusal.ts';

/** One request. */
export interface ApiQuestion {
  /** The path below the version (/queryAll?q=…), or a full path named in a response. */
  path: string;
  /** A JSON document; if present, the request is a POST. */
  body?: object;
  /** Set, together with a body, if the request changes a record. */
  method?: 'PATCH';
  /** Set if the response is text of this type instead of JSON. */
  text?: 'text/csv';
  /** Statuses to accept as a response, whatever their body contains. */
  accepts?: readonly number[];
}

/** A session with one organization. */
export interface Session {
  readonly host: string;
  /** Returns when the first response was sent, by the organization's own clock. */
  startedAt(): number | undefined;
  /**
   * Sends a request. Throws Invalid, Unavailable, RateLimited, and the signal's reason if aborted.
   */
  ask(question: ApiQuestion): Promise<Said>;
  close(): Promise<void>;
}

/** The parts that a session needs. */
export interface SessionOptions extends Surroundings {
  options: SalesforceOptions;
  grants: Grants;
  signal: AbortSignal;
}

/** Statuses whose meaning depends on the code in the response. */
const refusals = [400, 401, 403, 404];
const mend = { credentials: 'auth', request: 'where' };

/** Creates a session. It connects with the first request. */
export function createSession({ options, grants, signal, ...rest }: SessionOptions): Session {
  const { timeoutMs, version } = options;
  const base = `/services/data/${pathSegment(version)}`;
  let startedAt: number | undefined;
  let open: { origin: string; asking: Asking } | undefined;
  const askingAt = async ({ origin }: Grant): Promise<Asking> => {
    if (open?.origin === origin) return open.asking;
    await open?.asking.close();
    open = { origin, asking: createAsking({ url: origin, timeoutMs, mend }, rest) };
    return open.asking;
  };
  const askWith = async (grant: Grant, { path, body, method, text, accepts = [] }: ApiQuestion) => {
    const asking = await askingAt(grant);
    const address = grant.origin + (path.startsWith('/services/') ? path : base + path);
    const headers = { authorization: `Bearer ${grant.token}`, ...(text && { accept: text }) };
    const json = body && { type: 'application/json' as const, text: JSON.stringify(body) };
    const all = [...(text ? [200] : []), ...refusals, ...accepts];
    const how = { ...(json && { body: json }), ...(method && { method }) };
    const said = await asking.ask({ address, headers, accepts: all, ...how }, signal);
    if (!said) throw new Error('404 is among what is accepted');
    startedAt ??= observe(said.status, said.headers, 0).dateMs;
    return said;
  };
  return {
    host: new URL(options.url).host,
    startedAt: () => startedAt,
    async ask(question) {
      const grant = await grants.current(signal);
      let said = await askWith(grant, question);
      if (said.status === 401) said = await askWith(await grants.renew(signal), question);
      const isAnswer = said.status < 400 || question.accepts?.includes(said.status);
      if (!isAnswer) throw errorOf(refusalOf(said), new URL(options.url).host);
      return said;
    },
    close: async () => open?.asking.close(),
  };
}
