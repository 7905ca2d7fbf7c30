import type { Answer } from '../../domain/exchange.ts';

/** A request, with its path and query apart. */
export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: string;
}

export interface ApiOutcome {
  status: number;
  body: Readonly<Record<string, unknown>>;
  about?: About;
  /** Set if the request did not match the schemas of its operation. */
  misfit?: true;
}

/** The records that a request concerned, as far as the request or its response names them. */
export interface About {
  contactId?: string | undefined;
  email?: string | undefined;
  channelId?: string;
  subscription?: 'opt_in' | 'opt_out';
  templateId?: string;
  domainId?: string;
  keyId?: string;
  created?: true;
}

/** Returns an error response in the platform's format ("Errors 1"). */
export function refuse(
  status: number,
  message: string,
  { about, ...detail }: { why: string; fix: string; about?: About },
): ApiOutcome {
  const link = `https://docs.example.com/errors#${status}`;
  return { status, body: { message, ...detail, link }, ...(about && { about }) };
}

/** Returns an error response with only a message, as some operations do ("Errors 1"). */
export function refuseBriefly(status: number, message: string, about?: About): ApiOutcome {
  return { status, body: { message }, ...(about && { about }) };
}

export function toAnswer({ status, body }: ApiOutcome, headers: Record<string, string>): Answer {
  const parts = Object.entries(body).map(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value)
      ? `[${value.map(writeOne).join(',')}]`
      : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: `{${parts.flat().join(',')}}`,
  };
}

/** Caches the JSON of frozen objects, which never change. */
const texts = new WeakMap<object, string>();

function writeOne(value: unknown): string {
  if (!Object.isFrozen(value) || typeof value !== 'object' || value === null) {
    return JSON.stringify(value) ?? 'null';
  }
  const text = texts.get(value) ?? JSON.stringify(value);
  texts.set(value, text);
  return text;
}

/** Formats a time as the platform does, in ISO 8601 and UTC. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
