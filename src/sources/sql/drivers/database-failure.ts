/**
 * Explains a database error in one line. It names the database and quotes nothing from its message
 * except the name of a table or column, because messages contain values. An error that may resolve
 * itself is Unavailable; a person has to fix the others.
 */
import { Invalid, isExpected, type ProblemCode, Unavailable } from '../../../domain/errors.ts';
import { quoted } from '../../shared/field-suggestions.ts';

const ACCESS = 'database-access';
const SLOW = 'raise timeoutMs of the source, or have an index made for key and updatedAt';

/**
 * Maps error codes to verdicts; the first row that matches one of the codes counts. An error
 * without a fix may resolve itself. 'database-access' means that the address or the credentials are
 * wrong, regardless of the query.
 */
const verdicts: readonly [codes: RegExp, what: string, fix?: string, code?: ProblemCode][] = [
  [
    /^(1044|1142|1143|1227|1370|42501)$/,
    'does not permit to read this',
    'grant its user SELECT on it',
  ],
  [/^(1049|3D000)$/, 'has no database of that name', 'correct url of the source', ACCESS],
  [
    /^(1130|1698)$/,
    'does not let this user in from here',
    'correct url of the source, or its rights',
    ACCESS,
  ],
  [/^(3159|4031)$/, 'demands encryption', 'remove allowPlain, or name ca', ACCESS],
  [/^(1969|3024|57014|SQLITE_INTERRUPT)$/, `took longer than is waited for (${SLOW})`],
  [
    /^28/,
    'refused the credentials',
    'correct user and password of the source, or their rights there',
    ACCESS,
  ],
  [/^(42P01|42S02|3F000)$/, 'has no table {name}', 'correct table or query of the source'],
  [/^(42703|42S22)$/, 'knows no column {name}', 'correct query of the source'],
  [
    /^(42702|42S21|1052|1060)$/,
    'has two columns of one name',
    'give them names of their own in query',
  ],
  [
    /^(23|45000$|P0001$|SQLITE_CONSTRAINT)/,
    'does not take this',
    'correct what is written',
    'database-refusal',
  ],
  [/^25/, 'does not let this be written', 'have query read only'],
  [
    /^(22021|22P05)$/,
    'holds text that cannot be converted to UTF-8',
    'correct it there, or convert its column in query',
  ],
  [
    /^(42|0A|21|22)/,
    'cannot do what it is asked',
    'correct key, updatedAt and query of the source',
  ],
  [
    /^(SQLITE_CORRUPT|SQLITE_NOTADB)/,
    'is no database of SQLite, or a damaged one',
    'correct url',
    ACCESS,
  ],
  [
    /^SQLITE_(CANTOPEN|READONLY)/,
    'cannot be opened while its log is elsewhere',
    'let the user who runs this write in its folder, or take it out of WAL',
  ],
  [/^SQLITE_(BUSY|LOCKED)/, 'is being written to'],
  [/^SQLITE_ERROR/, 'cannot do what it is asked', 'correct key, updatedAt and query of the source'],
  [
    /^(HANDSHAKE_NO_SSL_SUPPORT|NO_TLS)$/,
    'offers no encryption',
    'switch it on there, or add allowPlain',
    ACCESS,
  ],
  [
    /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|INVALID_CA|HANDSHAKE_SSL)/,
    'has a certificate that is not believed',
    'name with ca who signed it, and its host in url as it stands there',
    ACCESS,
  ],
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
export class DatabaseError extends Invalid {
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
  for (const [pattern, what, fix, code] of verdicts) {
    if (!codes.some((one) => pattern.test(one))) continue;
    const line = `${name} ${what.replace('{name}', () => nameIn(message))} (${databaseCode})`;
    if (fix === undefined) return new Unavailable(line, { acted: 'no' });
    return new DatabaseError(line, { fix, code, databaseCode });
  }
  return new Unavailable(`${name} could not be read (${databaseCode})`, { acted: 'no' });
}

/** Returns the name of a table or column in a message: no value, and it shows what to correct. */
function nameIn(message: string): string {
  const found = /(?:relation|table|column):? ['"]?([\w.$]{1,60})['"]?(?: does|$|')/i.exec(message);
  const other = /Table '([\w.$]{1,60})'|Unknown column '([\w.$]{1,60})'/.exec(message);
  const name = found?.[1] ?? other?.[1] ?? other?.[2];
  return name === undefined ? 'of that name' : quoted(name);
}

/** Returns whether the database refused a text as a value for a column. */
export function isNoValue(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && /^22[0-9A-Z]{3}$/.test(error.databaseCode);
}

/** Returns whether the database works but refused the statement. */
export function isRefused(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.problems[0].code === 'database-refusal';
}
