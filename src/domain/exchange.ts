/**
 * One HTTP exchange as plain values: what the client sends and the emulator answers, socket or not.
 */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Request {
  method: Method;
  /** Path and query, beginning with a slash; appended to the base address. */
  path: string;
  /** Lower-case names. */
  headers: Record<string, string>;
  body?: string;
}

export interface Answer {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  body: string;
}

/**
 * Sends one request once: no retry, no interpretation of the status.
 * Throws Unavailable (with `acted`) when there is no answer, the signal's reason when aborted
 * before the request was written.
 */
export type Send = (request: Request, signal?: AbortSignal) => Promise<Answer>;
