/**
 * Keeps what was sent to the platform lately, and what it answered. Rows are collected and written
 * in batches. Losing some is allowed: a failure is printed once, and never ends or delays a run. Of
 * a contact, no name and no other attribute is kept.
 */
import type { Clock } from '../../domain/clock.ts';
import { type Attempt, requestIdOf } from '../../domain/exchange.ts';
import type { Requests, Secrets, StoredRequest } from './requests.ts';

export interface RequestLog {
  /** Returns a writer for one connection to the platform, which at most one run uses at a time. */
  writer(): RequestWriter;
  /** Writes what was collected, and takes nothing any more. */
  close(): void;
}

export interface RequestWriter {
  record(attempt: Attempt): void;
  /** Sets the run that the following requests belong to, if any. */
  setRun(id: string | undefined): void;
  /** Writes what was collected: some of it may be about a person who is to be removed. */
  flush(): void;
}

export interface LogOptions {
  requests: Requests;
  /** How long rows are kept, in milliseconds. */
  keepMs: number;
  /** The maximum size of the rows in bytes. */
  bytes: number;
  /** Texts that are never stored, such as the API key. */
  hides: readonly string[];
  clock: Clock;
  /** Prints why requests are not logged. It is called once at most. */
  warn(reason: string): void;
}

const flushAfterMs = 1_000;
const flushAtRows = 500;

/** Nothing of it throws: what cannot be written is said. */
export function collectRequests(options: LogOptions): RequestLog {
  const { requests, keepMs, clock } = options;
  let isSaid = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (isSaid) return;
      isSaid = true;
      const why = error instanceof Error ? error.message : String(error);
      options.warn(`some requests are missing from the request log (${why})`);
    }
  };
  const buffered: Row[] = [];
  const closed = new AbortController();
  const due = { later: false, soon: false };

  const bounds = () => ({ since: clock.now() - keepMs, bytes: options.bytes });
  const flush = (): void => {
    const batch = buffered.splice(0);
    attempt(() => {
      const rows = batch.map((row) => stored(row, requests.secrets, options.hides));
      if (rows.length > 0) requests.append(rows);
      requests.trim(bounds());
    });
  };
  const flushIn = (when: keyof typeof due, ms: number): void => {
    if (due[when]) return;
    due[when] = true;
    const slept = (): void => {
      due[when] = false;
      if (!closed.signal.aborted) flush();
    };
    // The sleep rejects when the log is closed, which writes what is left.
    clock.sleep(ms, closed.signal).then(slept, () => undefined);
  };
  const put = (row: Row): void => {
    if (closed.signal.aborted) return;
    buffered.push(row);
    flushIn('later', flushAfterMs);
    // Not at once, because the number of records in a list is added after the response is parsed.
    if (buffered.length >= flushAtRows) flushIn('soon', 0);
  };
  return {
    writer() {
      let run: string | undefined;
      return {
        record: (made) => put({ attempt: made, run }),
        setRun: (id) => void (run = id),
        flush,
      };
    },
    close() {
      closed.abort();
      flush();
      attempt(() => {
        while (requests.trim(bounds()));
      });
    },
  };
}

interface Row {
  attempt: Attempt;
  run: string | undefined;
}

/** Reads keep the size of their response only; writes and refusals keep the texts. */
function stored({ attempt, run }: Row, secrets: Secrets, hides: readonly string[]): StoredRequest {
  const { at, route, ms, method, path, person, contact, answer, failure, rows } = attempt;
  const isRead = method === 'GET' && answer !== undefined && answer.status < 300;
  const keep = (text: string | undefined) => {
    if (text === undefined || text === '') return null;
    const whole = route.startsWith('contacts.') ? withoutAttributes(text) : text;
    const shown = hidden(whole.slice(0, longest * 2), hides);
    if (shown.length <= longest) return shown;
    // It is cut before a word, so that no part of an address is left without its rest.
    return `${shown.slice(0, longest).replace(/[^\s",:;<>(){}[\]]{0,320}$/, '')}…`;
  };
  const content = secrets.seal({
    method,
    path: hidden(path, hides),
    person: person ?? null,
    requestId: (answer && requestIdOf(answer)) ?? null,
    request: keep(attempt.body),
    answer: isRead ? null : keep(answer?.body),
    failure: keep(failure),
  });
  return {
    at,
    run: run ?? null,
    route,
    status: answer?.status ?? null,
    attempt: attempt.attempt,
    ms,
    size: answer ? Buffer.byteLength(answer.body) : null,
    rows: rows ?? null,
    person: person === undefined ? null : secrets.mark('person', person),
    contact: contact === undefined ? null : secrets.mark('contact', contact),
    content,
  };
}

const keptOfContact = new Set(
  (
    'object id email contact_id status subscription suppressionReason suppressedAt channels ' +
    'createdAt updatedAt event'
  ).split(' '),
);

const longest = 4_096;
/** The longest text of a contact that is read. Of a longer one, nothing is kept. */
const longestRead = 65_536;

function hidden(text: string, hides: readonly string[]): string {
  return hides.reduce((all, one) => (one === '' ? all : all.replaceAll(one, '‹key›')), text);
}

function withoutAttributes(text: string): string {
  if (!/^\s*[{[]/.test(text)) return text;
  if (text.length > longestRead) return '…';
  try {
    return JSON.stringify(keptOf(JSON.parse(text)));
  } catch {
    return '…';
  }
}

function keptOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(keptOf);
  if (typeof value !== 'object' || value === null) return value;
  const isContact = 'email' in value;
  const kept: Record<string, unknown> = {};
  for (const [field, of] of Object.entries(value)) {
    if (!isContact || keptOfContact.has(field)) kept[field] = keptOf(of);
  }
  return kept;
}
