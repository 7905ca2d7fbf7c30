/**
 * Watches each request to the platform, so that an outage is known while the requests are still
 * tried again.
 *
 *   answer            the platform   the API key
 *   none, or 5xx      fails
 *   401               works          refused
 *   2xx               works          works
 *   any other         works
 *
 * The time that an answer states tells whether the clock of this machine is right.
 */
import type { Config } from '../config/config.ts';
import { Unavailable } from '../domain/errors.ts';
import type { Answer } from '../domain/exchange.ts';
import { isTold, sayDifference } from '../engine/context/clock-difference.ts';
import { createSend } from '../http/send-request.ts';
import { systemClock } from '../http/system-clock.ts';
import type { PlatformOptions } from '../platform/platform.ts';
import type { OutageRecord } from '../store/health-file.ts';

type Transport = NonNullable<PlatformOptions['transport']>;

/** Creates a connection to the platform that records what comes of each request. */
export function watchedTransport(
  { platform: { url, timeoutMs } }: Pick<Config, 'platform'>,
  outages: Pick<OutageRecord, 'failed' | 'works'>,
): Transport {
  const { send, close } = createSend({ url, timeoutMs, userAgent: 'crm-mirror' });
  const { host } = new URL(url);
  const note = ({ status, headers: { date } }: Answer): void => {
    const aheadMs = date === undefined ? null : systemClock.now() - Date.parse(date);
    if (isTold(aheadMs)) outages.failed('clock', sayDifference(aheadMs), 'surely');
    else if (aheadMs !== null) outages.works('clock');
    if (status >= 500) {
      outages.failed('platform', { reason: `${host} answers ${status}` }, 'maybe');
      return;
    }
    outages.works('platform');
    if (status === 401) {
      const fix = 'write a valid key where platform.apiKey is read from; the next run reads it';
      outages.failed('key', { reason: `${host} answers 401`, fix }, 'surely');
    } else if (status < 300) outages.works('key');
  };
  return {
    close,
    async send(request, signal) {
      try {
        const answer = await send(request, signal);
        note(answer);
        return answer;
      } catch (error) {
        if (error instanceof Unavailable && !signal?.aborted)
          outages.failed('platform', error.problems[0], 'maybe');
        throw error;
      }
    },
  };
}
