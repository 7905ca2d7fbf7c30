import type { Answer } from '../../domain/exchange.ts';

/** What an operation says: the status and the JSON of its body. */
export interface ApiOutcome {
  status: number;
  body: object;
  /** Of whom the request spoke, for the request log. */
  about?: About;
  /** The request did not fit the schemas of its operation. */
  misfit?: true;
}

/** Whom and what a request was about, as far as the request or the answer tells. */
export interface About {
  contactId?: string | undefined;
  email?: string | undefined;
  channelId?: string;
  subscription?: 'opt_in' | 'opt_out';
  templateId?: string;
  domainId?: string;
  keyId?: string;
  /** The contact was made by this request. */
  created?: true;
}

/** The error envelope ("Errors 1"). */
export function refuse(status: number, message: string, detail: { why: string; fix: string }) {
  const link = `https://docs.example.com/errors#${status}`;
  return { status, body: { message, ...detail, link } } satisfies ApiOutcome;
}

/** An error body with nothing but a message, as some operations have it ("Errors 1"). */
export function refuseBriefly(status: number, message: string) {
  return { status, body: { message } } satisfies ApiOutcome;
}

export function toAnswer({ status, body }: ApiOutcome, headers: Record<string, string>): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: write(body),
  };
}

/** The JSON of what is frozen, which never changes. */
const texts = new WeakMap<object, string>();

/** The JSON of a body: a list of frozen records costs no more than joining what was written. */
function write(body: object): string {
  const parts = Object.entries(body).map(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value)
      ? `[${value.map(writeOne).join(',')}]`
      : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${parts.flat().join(',')}}`;
}

function writeOne(value: unknown): string {
  if (!Object.isFrozen(value) || typeof value !== 'object' || value === null) {
    return JSON.stringify(value) ?? 'null';
  }
  const text = texts.get(value) ?? JSON.stringify(value);
  texts.set(value, text);
  return text;
}

/** A timestamp as the platform writes it: ISO 8601 in UTC. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
