/**
 * Reads a file from a web address as it arrives. Its ETag, or the time of its last modification,
 * names the read; without either, each read is new. The server cannot report whether the file has
 * changed, so a read stays valid for a quarter of an hour. If the download breaks off, the records
 * that arrived are kept.
 */
import { hash } from 'node:crypto';
import { download, type Download } from '../../../http/download.ts';
import { createRetry, resend } from '../../../http/retry.ts';
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import { type Flaw, holding } from '../read-certificate.ts';
import { lowerCased, outwait, refusal, type Surroundings } from '../crm-request.ts';
import type { Origin } from './local-file.ts';
import type { PlacedOptions } from './file-options.ts';

const SILENCE_MS = 30_000;
const mend = { credentials: 'the headers', request: 'path', address: 'path' };

export function addressOrigin(options: PlacedOptions, surroundings: Surroundings): Origin {
  const { clock } = surroundings;
  const { host } = new URL(options.path);
  const { keep, still } = holding(clock);
  return {
    name: host,
    isPacked: false,
    async open(signal) {
      const found = await fetchFile(options, surroundings, signal);
      const { etag, 'last-modified': modified, 'content-length': length = '' } = found.headers;
      const ofTime = modified ? `modified-${modified} ${length}`.trim() : `address-${clock.now()}`;
      const reading = etag ? `etag-${hash('sha256', etag).slice(0, 16)}` : ofTime;
      keep(reading);
      return { reading, ...countBytes(found), close: found.close };
    },
    still,
  };
}

/** Returns the response with the file. The request is repeated only until a response begins. */
async function fetchFile(
  options: PlacedOptions,
  { clock, random }: Surroundings,
  signal: AbortSignal,
): Promise<Download> {
  const { host } = new URL(options.path);
  const request = {
    url: options.path,
    timeoutMs: options.timeoutMs ?? SILENCE_MS,
    headers: {
      accept: '*/*',
      ...lowerCased(options.headers),
      'accept-encoding': 'gzip',
      'user-agent': 'crm-mirror',
    },
  };
  const attempt = async () => {
    const once = async () => {
      const found = await download(request, signal);
      if (found.status !== 200) await found.close();
      return found;
    };
    const found = await outwait(once, { host, clock, signal });
    const fault = faultOf(found, host);
    if (!fault) return found;
    await found.close();
    throw fault;
  };
  try {
    return await createRetry({ clock, random })(resend.freely, attempt, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

function faultOf({ status, headers }: Download, host: string): Error | undefined {
  if (status === 404 || status === 410) {
    return new Invalid(`${host} has no such file (${status})`, {
      fix: 'correct path of the source',
    });
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new Unavailable(`${host} answered ${status}`, { acted: 'no', status });
  }
  if (status !== 200) return refusal(status, host, mend);
  if (headers['content-type']?.includes('html')) {
    const doubt = 'is path of the source the address of the file?';
    return new Unavailable(`${host} answered with a web page (${doubt})`, { acted: 'no' });
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (/^(x-gzip|gzip|identity)$/i.test(encoding)) return undefined;
  return new Invalid(`${host} packs the file as it was not asked to`, {
    fix: 'have it use gzip or nothing',
  });
}

/** Counts the bytes. Without a length or chunks, a response ends wherever the connection does. */
function countBytes({ headers, body }: Download) {
  const { 'content-length': length, 'transfer-encoding': transfer = '' } = headers;
  let count = 0;
  async function* bytes() {
    for await (const chunk of body) {
      count += chunk.length;
      yield chunk;
    }
  }
  const flaws = (): Flaw[] => {
    if (length !== undefined) {
      if (count === Number(length)) return [];
      return [{ why: `${count} of ${length} bytes were read`, fix: 'read it again' }];
    }
    if (/\bchunked\b/i.test(transfer)) return [];
    const why = 'the answer does not say how long it is, so it may be cut off';
    return [{ why, fix: 'have the server name its length' }];
  };
  const size = length === undefined ? undefined : Number(length);
  return {
    bytes: bytes(),
    ...(size !== undefined && { size }),
    flaws: async (whole: boolean) => (whole ? flaws() : []),
  };
}
