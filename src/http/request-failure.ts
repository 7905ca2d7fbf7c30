/**
 * Converts a failed request into a one-line message that names the host and quotes nothing from the
 * exchange.
 */
import { Invalid, Unavailable } from '../domain/errors.ts';

/** How far a request got: not yet written, written, or its response begun. */
export type Stage = 'waiting' | 'written' | 'answering';

const CONNECTING: Record<string, string> = {
  ECONNREFUSED: 'refused the connection',
  ENOTFOUND: 'is not known to DNS',
  EAI_AGAIN: 'could not be looked up in DNS',
  UND_ERR_CONNECT_TIMEOUT: 'gave no connection in time',
  ETIMEDOUT: 'gave no connection in time',
  UND_ERR_DESTROYED: 'is not spoken to any more: the connections were closed',
  UND_ERR_CLOSED: 'is not spoken to any more: the connections were closed',
};

const EXCHANGING: Record<string, string> = {
  UND_ERR_RES_EXCEEDED_MAX_SIZE:
    'answered more than is accepted at once, 16 MiB: ask for smaller pages',
  UND_ERR_HEADERS_TIMEOUT: 'did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'fell silent in the middle of its answer',
  HTTPParserError: 'answered something that is not HTTP',
  UND_ERR_HEADERS_OVERFLOW: 'answered with more headers than are accepted',
};

const TLS =
  /^(ERR_TLS|ERR_SSL|CERT_|CRL_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|INVALID_CA|EPROTO)/;

/**
 * Returns the error for a request that failed at `stage`. It has no cause on purpose, because
 * undici's errors contain parts of the response and of the socket.
 */
export function describe(error: Error, host: string, stage: Stage): Invalid | Unavailable {
  const code = codeOf(error);
  if (code === 'UND_ERR_INVALID_ARG') {
    return new Invalid(`a request to ${host} cannot be written: ${error.message}`);
  }
  const acted = stage === 'waiting' ? 'no' : 'maybe';
  return new Unavailable(`${host} ${happened(code, stage)} (${code})`, { acted });
}

function happened(code: string, stage: Stage): string {
  // Some kernels report a refused connection only once something is written to it.
  if (stage === 'waiting' || code === 'ECONNREFUSED') {
    return CONNECTING[code] ?? (TLS.test(code) ? 'failed to agree on TLS' : 'could not be reached');
  }
  if (EXCHANGING[code] !== undefined) return EXCHANGING[code];
  if (stage === 'written') return 'cut the connection before it answered';
  return 'cut the connection in the middle of its answer';
}

function codeOf(error: Error): string {
  const code: unknown = 'code' in error ? error.code : undefined;
  // The HTTP parser may set a specific code for each kind of malformed input, or none; its name
  // says enough.
  return typeof code === 'string' && error.name !== 'HTTPParserError' ? code : error.name;
}
