/**
 * Reports opt-outs to an HTTP API: one request per report, with the report's id as Idempotency-Key.
 * An API that supports this header processes each report once. Even without it, writing the same
 * opt-out twice changes nothing.
 *
 *   2xx                        reported
 *   404, 410                   the CRM does not have this person: rejected
 *   400, 409, 413, 422         the CRM does not accept this report: rejected
 *   anything else              handled as for a read (crm-request.ts); the run sends no further
 *                              reports
 */
import { isDotSegment, pathSegment, queryValue } from '../../domain/address-part.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { createAsking, type Asking, type Surroundings } from '../shared/crm-request.ts';
import type { WriteBack, ReportResult } from '../write-back.ts';
import type { HttpReturnsOptions } from './options.ts';

const AT_ONCE = 20;
const MOST_WAIT_MS = 20_000;
const done = [200, 201, 202, 203, 204, 205, 206, 207, 208, 226];
const gone = [404, 410];
const accepts = [...done, ...gone, 400, 409, 413, 422];
const mend = { credentials: 'the headers', request: 'url, method and body', of: 'returns' };

export function httpReturns(options: HttpReturnsOptions, surroundings: Surroundings): WriteBack {
  const { url } = options;
  const needsId = (url + JSON.stringify(options.body ?? '')).includes('{id}');
  const { host } = new URL(url);
  return {
    most: AT_ONCE,
    takes: ({ crmId }) => !needsId || crmId !== '',
    async *tell(batch, signal) {
      const asking = createAsking({ ...options, mend, mostWaitMs: MOST_WAIT_MS }, surroundings);
      try {
        for (const one of batch) yield await report(asking, one, options, signal);
      } finally {
        await asking.close();
      }
    },
    look: () => `reported to ${host}, by ${options.method}`,
  };
}

async function report(
  asking: Asking,
  { id, email, crmId, channel, cause, by }: OptOutReport,
  { url, method, body }: HttpReturnsOptions,
  signal: AbortSignal,
): Promise<ReportResult> {
  const at = new Date(by).toISOString();
  const values: Values = { return: id, id: crmId, email, channel, cause, at };
  const valueOf = (name: string) => values[name] ?? '';
  const [path = '', query] = url.split(/(?=\?)/, 2);
  const inPath = [...path.matchAll(place)].map(([, name = '']) => valueOf(name));
  if (inPath.some(isDotSegment)) {
    const reason = 'an id of dots makes the address that of something else';
    return { is: 'rejected', reason, fix: 'give the record another id, or name it in body' };
  }
  const said = await asking.ask(
    {
      address:
        filled(path, (name) => pathSegment(valueOf(name))) +
        filled(query ?? '', (name) => queryValue(valueOf(name))),
      method,
      headers: { 'idempotency-key': id },
      ...(body !== undefined && {
        body: { type: 'application/json', text: JSON.stringify(inside(body, values)) },
      }),
      accepts,
    },
    signal,
  );
  const status = said?.status ?? 404;
  if (done.includes(status)) return { is: 'told' };
  return {
    is: 'rejected',
    reason: gone.includes(status)
      ? `the CRM does not have this person (${status})`
      : `the CRM refused it (${status})`,
    fix: gone.includes(status)
      ? 'is url of returns the address of a record?'
      : 'correct url and body of returns, or the record in the CRM',
  };
}

const place = /\{(\w+)\}/g;

type Values = Readonly<Record<string, string>>;

function filled(text: string, valueOf: (name: string) => string): string {
  return text.replaceAll(place, (_, name: string) => valueOf(name));
}

/** Fills in the placeholders in a JSON value's texts, but not in its field names. */
function inside(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return filled(value, (name) => values[name] ?? '');
  if (Array.isArray(value)) return value.map((inner) => inside(inner, values));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, inside(inner, values)]);
  return Object.fromEntries(entries);
}
