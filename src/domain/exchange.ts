/**
 * One HTTP exchange as plain values, with or without a socket: the client sends requests, the
 * emulator answers them.
 */

/** The methods of the platform's API and of CRM APIs. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One HTTP request. */
export interface Request {
  method: Method;
  /** Path and query, beginning with a slash; appended to the base address. */
  path: string;
  /** Header names are in lower case. */
  headers: Record<string, string>;
  body?: string;
}

/** One HTTP response with its whole body as text. */
export interface Answer {
  status: number;
  /** Header names are in lower case. */
  headers: Record<string, string>;
  body: string;
}

/**
 * Sends one request once; does not retry and does not interpret the status. Throws Unavailable
 * (with `acted`) when there is no answer, and the signal's reason when it is aborted before the
 * request was written.
 */
export type Send = (request: Request, signal?: AbortSignal) => Promise<Answer>;
