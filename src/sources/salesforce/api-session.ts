/** Questions to the API of one organization, with a token that is renewed when it has expired. */
import { observe } from '../../http/rate-limit-headers.ts';
import { createAsking, type Asking, type Said, type Surroundings } from '../shared/crm-request.ts';
import type { Grant, Grants } from './access-grant.ts';
import type { SalesforceOptions } from './options.ts';
import { errorOf, refusalOf } from './protocol/api-refusal.ts';

/** One question. */
export interface ApiQuestion {
  /** The path below the version (/queryAll?q=…), or a whole path that an answer has named. */
  path: string;
  /** A JSON document; with it the question is a POST. */
  body?: object;
  /** With a body: a record is changed. */
  method?: 'PATCH';
  /** Set when the answer is text of this type and not JSON. */
  text?: 'text/csv';
  /** Statuses that are an answer too, whatever their body is. */
  accepts?: readonly number[];
}

/** A session with one organization. */
export interface Session {
  readonly host: string;
  /** Returns when the first answer was sent, by the organization's own clock. */
  startedAt(): number | undefined;
  /**
   * Asks a question. Throws Invalid, Unavailable, RateLimited, and the signal's reason when
   * aborted.
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

/** Answers with these statuses are distinguished by the code in them. */
const refusals = [400, 401, 403, 404];
const mend = { credentials: 'auth', request: 'where' };

/** Creates a session; it connects with the first question. */
export function createSession({ options, grants, signal, ...rest }: SessionOptions): Session {
  const { timeoutMs, version } = options;
  const base = `/services/data/${version}`;
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
