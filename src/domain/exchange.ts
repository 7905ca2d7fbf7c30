/** One HTTP exchange as plain values. The client sends requests, the emulator answers them. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Request {
  method: Method;
  /** The path and query, starting with a slash; appended to the base address. */
  path: string;
  /** With names in lower case. */
  headers: Record<string, string>;
  body?: string;
}

/** One HTTP response, with its whole body as text. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/**
 * Sends a request once, whatever the status. Throws Unavailable (with `acted`) if no response came,
 * and the signal's reason if it is aborted before the request was written.
 */
export type Send = (request: Request, signal?: AbortSignal) => Promise<Answer>;

const requestIdHeaders = ['x-request-id', 'request-id', 'x-correlation-id', 'cf-ray'];
const mostIdLength = 64;

/** Returns the platform's id of the request, at most 64 printable characters, if it names one. */
export function requestIdOf({ headers }: { headers: Answer['headers'] }): string | undefined {
  const id = requestIdHeaders.map((name) => headers[name]).find((value) => value);
  return id?.replace(/[^\x21-\x7e]/g, '').slice(0, mostIdLength) || undefined;
}

/** One request to the platform and its outcome, for a log, without the headers of the request. */
export interface Attempt {
  /** When the attempt began, in milliseconds since the epoch. */
  at: number;
  ms: number;
  route: string;
  method: Method;
  path: string;
  body?: string | undefined;
  /** The number of the attempt for this request, from 1 on. */
  attempt: number;
  person?: string | undefined;
  contact?: string | undefined;
  /** The response; without one, `failure` says why there is none. */
  answer?: Answer | undefined;
  failure?: string | undefined;
  /** The number of records in a list. It is set once the response is parsed. */
  rows?: number | undefined;
}
