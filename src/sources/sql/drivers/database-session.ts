/**
 * One connection to a database within one transaction. A reader cannot write and sees a single
 * state from beginning to end. What a writer has not committed at closing is discarded.
 */
import { z } from 'zod';
import type { Clock } from '../../../domain/clock.ts';
import { Socket } from 'node:net';
import { Invalid, isExpected, type ProblemCode, Unavailable } from '../../../domain/errors.ts';
import { quoted } from '../../shared/record-fields.ts';

/** A value in the driver's representation, so that it can be bound again unchanged. */
export type Raw = string | number | bigint | Uint8Array | null;

const raw = z.union([z.string(), z.number(), z.bigint(), z.instanceof(Uint8Array), z.null()]);
export const rawRows = z.array(z.array(raw));

/** The kind of values. `any` means that the database does not declare it and rows may differ. */
export type Holds =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  /** In order: a point in time, a local time without a zone, a day. */
  | 'instant'
  | 'time'
  | 'day'
  | 'json'
  | 'bits'
  | 'bytes'
  | 'any';

export interface Column {
  name: string;
  holds: Holds;
  /** The type to which a value is cast for comparison; undefined if no cast is needed. */
  type?: string;
}

export interface Session {
  readonly name: string;
  /** The time of the database's clock before the state was fixed, in epoch milliseconds. */
  readonly now: number;
  quote(name: string): string;
  /** Returns the placeholder for value `number` (from 1) in a comparison with a column. */
  place(number: number, column?: Column): string;
  time(at: number): string;
  /** Returns an expression that compares exact bytes, whatever the database considers equal. */
  exact(quoted: string): string;
  /** Returns the values that a text may represent in a column; empty if no value has this form. */
  meant(text: string, column: Column): Raw[];
  columns(relation: string): Promise<Column[]>;
  /** Runs one statement. Throws Invalid, Unavailable, and the signal's reason if it is aborted. */
  rows(statement: string, values: readonly Raw[]): Promise<Raw[][]>;
  /** Runs one statement too. Returns how many rows it changed, or had to change, or returned. */
  run(statement: string, values: readonly Raw[]): Promise<number>;
  /** Runs a command of the transaction, such as a savepoint or its end. Throws the same errors. */
  command(text: string): Promise<void>;
  close(): Promise<void>;
}

export type Mode = 'read' | 'write';

export interface Opening {
  clock: Clock;
  signal: AbortSignal;
  timeoutMs: number;
}

/** Converts hexadecimal digits to bytes. Returns undefined for any other text. */
export function bytesOf(text: string): Buffer | undefined {
  return /^([\da-f]{2})+$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

export interface ServerPlace {
  system: 'postgres' | 'mysql';
  /** A host. For a socket, its folder (PostgreSQL) or file (MySQL), which begins with a slash. */
  host: string;
  port: number;
  user: string;
  password: string | undefined;
  database: string;
  /** Whether traffic to the server never leaves this machine. */
  local: boolean;
  encrypted: boolean;
}

export interface ServerAccess extends ServerPlace {
  /** The encryption settings, if any; without `ca`, the authorities of Node.js apply. */
  tls: { ca?: string } | undefined;
}

/** The longest wait for a cancellation or for a clean disconnect. */
export const BRIEF_MS = 3_000;

/** The client waits longer than the server, so that the server reports a slow statement. */
const GRACE_MS = 5_000;

/** Returns the milliseconds after which the client considers the connection dead. */
export function patienceOf(timeoutMs: number): number {
  return timeoutMs + GRACE_MS;
}

/** Creates a connection that is not yet open; `name` is for messages. */
export function createServerConnection(name: string, { signal, clock }: Opening) {
  const socket = new Socket();
  // The drivers add and remove their own listeners.
  socket.on('error', () => undefined);
  let asked: PromiseWithResolvers<never> | undefined;
  let cancel: (() => Promise<void>) | undefined;
  let busy = false;
  let canceled: Promise<void> | undefined;
  const end = () => void socket.destroy();
  const abort = () => {
    asked?.reject(signal.reason);
    canceled = busy ? cancel?.().catch(() => undefined) : undefined;
    if (canceled) void canceled.finally(end);
    else end();
  };
  signal.addEventListener('abort', abort, { once: true });
  return {
    socket,
    /** Runs `work`. Throws this project's errors, and the signal's reason once it is aborted. */
    async ask<T>(work: () => Promise<T>): Promise<T> {
      signal.throwIfAborted();
      // Between two operations, an abandoned reader must not keep the process alive.
      socket.ref();
      busy = true;
      // A long-lived promise would retain everything that it was raced against.
      asked = Promise.withResolvers();
      try {
        return await Promise.race([work(), asked.promise]);
      } catch (error) {
        signal.throwIfAborted();
        throw failureOf(error, name);
      } finally {
        busy = false;
        asked = undefined;
        socket.unref();
      }
    },
    /** Sets the function that stops the server when the signal is aborted during a statement. */
    onAbort: (how: () => Promise<void>) => void (cancel = how),
    async close(farewell: () => Promise<void>): Promise<void> {
      signal.removeEventListener('abort', abort);
      await canceled;
      if (!signal.aborted) {
        // A server that no longer responds does not respond to the disconnect either.
        const enough = new AbortController();
        const waited = clock.sleep(BRIEF_MS, enough.signal).catch(() => undefined);
        await Promise.race([farewell().catch(() => undefined), waited]);
        enough.abort();
      }
      end();
    },
  };
}

// Explains a database error in one line, which names the database and quotes only the name of a
// table or column, because messages contain values. What may resolve itself is Unavailable.

type Verdicts = readonly [codes: RegExp, what: string, fix?: string][];

const REFUSED = /^(23|45000$|P0001$|SQLITE_CONSTRAINT)/;
const SLOW = 'raise timeoutMs of the source, or have an index made for key and updatedAt';
const QUERY = 'correct key, updatedAt and query of the source';
const CHECK_CA = 'name with ca who signed it, and its host in url as it stands there';
const CHECK_LOGIN = 'correct user and password of the source, or their rights there';
const CHECK_WAL = 'let the user who runs this write in its folder, or take it out of WAL';
const NOT_UTF8 = 'holds text that cannot be converted to UTF-8';
const TLS =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|INVALID_CA|HANDSHAKE_SSL)/;

/** Codes that mean that the address or the credentials are wrong, whatever the query. */
const accessVerdicts: Verdicts = [
  [/^(1049|3D000)$/, 'has no database of that name', 'correct url of the source'],
  [
    /^(1130|1698)$/,
    'does not let this user in from here',
    'correct url of the source, or its rights',
  ],
  [/^(3159|4031)$/, 'demands encryption', 'remove allowPlain, or name ca'],
  [/^28/, 'refused the credentials', CHECK_LOGIN],
  [/^(SQLITE_CORRUPT|SQLITE_NOTADB)/, 'is no database of SQLite, or a damaged one', 'correct url'],
  [
    /^(HANDSHAKE_NO_SSL_SUPPORT|NO_TLS)$/,
    'offers no encryption',
    'switch it on there, or add allowPlain',
  ],
  [TLS, 'has a certificate that is not believed', CHECK_CA],
];

/** The other codes; the first row that matches one counts. An error without a fix may pass. */
const verdicts: Verdicts = [
  [
    /^(1044|1142|1143|1227|1370|42501)$/,
    'does not permit to read this',
    'grant its user SELECT on it',
  ],
  [/^(1969|3024|57014|SQLITE_INTERRUPT)$/, `took longer than is waited for (${SLOW})`],
  [/^(42P01|42S02|3F000)$/, 'has no table {name}', 'correct table or query of the source'],
  [/^(42703|42S22)$/, 'knows no column {name}', 'correct query of the source'],
  [
    /^(42702|42S21|1052|1060)$/,
    'has two columns of one name',
    'give them names of their own in query',
  ],
  [REFUSED, 'does not take this', 'correct what is written'],
  [/^25/, 'does not let this be written', 'have query read only'],
  [/^(22021|22P05)$/, NOT_UTF8, 'correct it there, or convert its column in query'],
  [/^(42|0A|21|22)/, 'cannot do what it is asked', QUERY],
  [/^SQLITE_(CANTOPEN|READONLY)/, 'cannot be opened while its log is elsewhere', CHECK_WAL],
  [/^SQLITE_(BUSY|LOCKED)/, 'is being written to'],
  [/^SQLITE_ERROR/, 'cannot do what it is asked', QUERY],
  [/^ECONNREFUSED$/, 'refused the connection'],
  [/^ENOTFOUND$/, 'is not known to DNS'],
  [/^EAI_AGAIN$/, 'could not be looked up in DNS'],
  [/^ENOENT$/, 'has no socket there'],
  [/^(ETIMEDOUT|CONNECT_TIMEOUT)$/, 'gave no connection in time'],
  [/^(PROTOCOL_SEQUENCE_TIMEOUT|ANSWER_TIMEOUT)$/, `gave no answer in time (${SLOW})`],
  [/^(08|ECONNRESET$|EPIPE$|PROTOCOL_CONNECTION_LOST$|LOST$)/, 'cut the connection'],
  [/^(53|1040$|1203$|1226$)/, 'has no connection left'],
  [/^(57P|1053$|1927$)/, 'is being shut down or started'],
];

/** Maps driver messages that have no code to a code. */
const unnamed: readonly [message: RegExp, code: string][] = [
  [/^no such table: /, '42P01'],
  [/^no such column: /, '42703'],
  [/more than one statement/, '42601'],
  [/^attempt to write/, '25006'],
  [/does not support SSL/, 'NO_TLS'],
  [/establishing an SSL/, 'NO_TLS'],
  [/timeout expired|due to connection timeout/, 'CONNECT_TIMEOUT'],
  [/read timeout/, 'ANSWER_TIMEOUT'],
  [/terminated|not queryable|connection.*closed|closed state/i, 'LOST'],
];

/** An error that a person has to fix, with the code that the database or driver uses for it. */
class DatabaseError extends Invalid {
  readonly databaseCode: string;
  constructor(
    reason: string,
    detail: { fix: string; code: ProblemCode | undefined; databaseCode: string },
  ) {
    super(reason, detail);
    this.databaseCode = detail.databaseCode;
  }
}

/** Returns the error for a failure of the database `name`. Returns bugs unchanged. */
export function failureOf(error: unknown, name: string): unknown {
  if (!(error instanceof Error) || isExpected(error)) return error;
  const { message } = error;
  // An SQLSTATE, a MySQL error number, or the name that Node.js or a driver uses.
  const given = ['errno', 'sqlState', 'code'].map((field): unknown => Reflect.get(error, field));
  const stated = given.filter((code) => typeof code === 'string' || typeof code === 'number');
  const named = unnamed.filter(([text]) => text.test(message)).map(([, code]) => code);
  const codes = [...named, ...stated.map(String).toReversed()];
  if (error.name === 'ZodError' || (error instanceof TypeError && codes.length === 0)) return error;
  const [databaseCode = error.name] = codes;
  for (const verdict of [...accessVerdicts, ...verdicts]) {
    const [pattern, what, fix] = verdict;
    if (!codes.some((one) => pattern.test(one))) continue;
    const line = `${name} ${what.replace('{name}', () => {
      // The name of a table or column in a message is no value, and shows what to correct.
      const found = /(?:relation|table|column):? ['"]?([\w.$]{1,60})['"]?(?: does|$|')/i.exec(
        message,
      );
      const other = /Table '([\w.$]{1,60})'|Unknown column '([\w.$]{1,60})'/.exec(message);
      const name = found?.[1] ?? other?.[1] ?? other?.[2];
      return name === undefined ? 'of that name' : quoted(name);
    })} (${databaseCode})`;
    if (fix === undefined) return new Unavailable(line, { acted: 'no' });
    const refusal = pattern === REFUSED ? 'database-refusal' : undefined;
    const code = accessVerdicts.includes(verdict) ? 'database-access' : refusal;
    return new DatabaseError(line, { fix, code, databaseCode });
  }
  return new Unavailable(`${name} could not be read (${databaseCode})`, { acted: 'no' });
}

/** Returns whether the database refused a text as a value for a column. */
export function isNoValue(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && /^22[0-9A-Z]{3}$/.test(error.databaseCode);
}

/** Returns whether the database works but refused the statement. */
export function isRefused(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.problems[0].code === 'database-refusal';
}
