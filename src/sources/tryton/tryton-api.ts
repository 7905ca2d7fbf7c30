/**
 * Sends requests to Tryton over JSON-RPC, in a session that is renewed once if it has expired. All
 * requests only read, and they are sent with `active_test: false`; otherwise inactive parties would
 * be left out and look absent.
 */
import { z } from 'zod';
import { observe } from '../../http/rate-limit-headers.ts';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { createAsking, type Surroundings } from '../shared/crm-request.ts';
import { type Logins, questionOf } from './login-session.ts';
import type { TrytonOptions } from './options.ts';

/** The models that this source reads. */
export type Model = 'party.party' | 'party.category';
/** A condition in Tryton's notation. */
export type Domain = readonly unknown[];

/** One page of a model. */
export interface PartyListing {
  above: number;
  domain: Domain;
  fields: readonly string[];
  limit: number;
}

/**
 * The requests. Each throws the errors of a request, and Invalid if the user lacks the permission
 * or the model does not exist.
 */
export interface Api {
  readonly host: string;
  /** Returns when the first response was sent, by the server's clock. */
  startedAt(): number | undefined;
  /** Returns the party fields that the user may read, each with its type. */
  fields(): Promise<Map<string, string>>;
  /** Returns the number of parties. */
  count(): Promise<number>;
  /**
   * Returns a page of records above an id, in ascending order; `text` is the text from which it was
   * parsed.
   */
  list(model: Model, listing: PartyListing): Promise<{ values: Listed[]; text: string }>;
  close(): Promise<void>;
}

const listed = z.looseObject({ id: z.number().int().positive() });
export type Listed = z.infer<typeof listed>;

const described = z.record(z.string(), z.looseObject({ type: z.string() }));
const mend = { credentials: 'username and password', request: 'url' };

interface ApiOptions extends Surroundings {
  options: TrytonOptions;
  logins: Logins;
  signal: AbortSignal;
}

/** Opens a connection to the API. */
export function createApi({ options, logins, signal, ...rest }: ApiOptions): Api {
  const asking = createAsking({ ...options, mend }, rest);
  const { host } = asking;
  const context = {
    active_test: false,
    ...(options.language !== undefined && { language: options.language }),
  };
  let startedAt: number | undefined;
  const askWith = async (session: string, method: string, params: readonly unknown[]) => {
    const question = questionOf(options, method, [...params, context]);
    const headers = { authorization: session };
    const said = await asking.ask({ ...question, headers, accepts: [401, 403] }, signal);
    if (!said)
      throw new Invalid(`${host} has no such address (404)`, { fix: `correct ${mend.request}` });
    startedAt ??= observe(said.status, said.headers, 0).dateMs;
    return said;
  };
  const ask = async <T>(shape: z.ZodType<T>, call: Call) => {
    const method = `model.${call.model}.${call.method}`;
    const session = await logins.current(asking, signal);
    let said = await askWith(session, method, call.params);
    if (said.status >= 400) {
      said = await askWith(await logins.renew(session, asking, signal), method, call.params);
    }
    if (said.status >= 400) throw forbidden(host, call.model, said.status);
    return { value: resultOf(shape, said.value, { host, model: call.model }), text: said.text };
  };
  return {
    host,
    startedAt: () => startedAt,
    async fields() {
      const call = { model: 'party.party', method: 'fields_get', params: [] } as const;
      const { value } = await ask(described, call);
      return new Map(Object.entries(value).map(([name, { type }]) => [name, type]));
    },
    async count() {
      const call = { model: 'party.party', method: 'search_count', params: [[]] } as const;
      return (await ask(z.number().int().min(0), call)).value;
    },
    async list(model, { above, domain, fields, limit }) {
      const where = [['id', '>', above], domain];
      const params = [where, 0, limit, [['id', 'ASC']], fields];
      const { value, text } = await ask(z.array(listed), { model, method: 'search_read', params });
      return { values: value, text };
    },
    close: () => asking.close(),
  };
}

interface Call {
  model: Model;
  method: string;
  params: readonly unknown[];
}

const failed = z.object({ error: z.array(z.unknown()) });
const answered = z.object({ result: z.unknown() });

/**
 * Returns the result in a response. Only the type of a failure is passed on, because its text may
 * contain personal data.
 */
function resultOf<T>(
  shape: z.ZodType<T>,
  value: unknown,
  { host, model }: { host: string; model: Model },
): T {
  const { data: failure } = failed.safeParse(value);
  if (failure) {
    const [kind] = failure.error;
    if (kind === `'${model}'`) {
      throw new Invalid(`${host}: the database has no parties`, {
        fix: 'activate the module party in it',
      });
    }
    if (kind === 'UserError') throw forbidden(host, model);
    const what = `${host} failed to answer about ${model}`;
    throw new Unavailable(what, { fix: 'look into its log', acted: 'maybe' });
  }
  const result = shape.safeParse(answered.safeParse(value).data?.result);
  if (result.success) return result.data;
  const what = `${host} answers about ${model} as no Tryton does`;
  throw new Unavailable(what, { fix: 'correct url of the source', acted: 'maybe' });
}

function forbidden(host: string, model: Model, status?: number): Invalid {
  const how = status === undefined ? '' : ` (${status})`;
  const fix = 'give it a group that may read them';
  return new Invalid(`${host} does not let this user read ${model}${how}`, { fix });
}
