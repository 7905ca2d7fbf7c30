import { randomBytes } from 'node:crypto';
import { renderProblem, Unavailable } from '../domain/errors.ts';
import type { Config } from '../config/config.ts';
import { systemClock } from '../http/system-clock.ts';
import { createPlatform, type PlatformOptions } from '../platform/platform.ts';
import type { Stuck } from '../http/rate-limit/request-gate.ts';
import {
  organizationOf,
  type SharedBudgets,
  sharedBudgets,
} from '../http/rate-limit/shared/shared-budget.ts';
import type { Memory } from '../store/memory/memory.ts';
import { collectRequests, type RequestLog } from '../store/memory/request-log.ts';
import { lasting } from './output/format-values.ts';
import type { Shell } from './process-shell.ts';
import type { Answer } from '../domain/exchange.ts';
import { isTold, sayDifference } from '../engine/context/platform-knowledge.ts';
import { createSend } from '../http/send-request.ts';
import type { OutageNotes } from '../store/health-file.ts';

/** `connecting` is what differs from the usual: for example, what records every attempt. */
export function connect(config: Config, shell: Shell, connecting: Partial<PlatformOptions> = {}) {
  const { url, apiKey, timeoutMs, reserve } = config.platform;
  const shared = shareLimits(config, shell);
  const { abort: signal } = shell;
  const budgetOf = shared?.budgetOf;
  const stuck = (told: Stuck): void =>
    shell.note(`crm-mirror: ${config.mirror}: ${stuckWords(told)}`);
  const paced = { reserve, signal, budgetOf, stuck };
  const platform = createPlatform({ url, apiKey, timeoutMs, ...paced, ...connecting });
  return {
    ...platform,
    close: async () => {
      await shared?.close();
      await platform.close();
    },
  };
}

function stuckWords({ route, forMs }: Stuck): string {
  if (forMs === undefined) return `requests of ${route} get through again`;
  const reason = `${route}: the platform has refused every request for ${lasting(forMs)} (429), and the remaining requests there wait`;
  const fix = 'see whether another program uses up the limit, or the account is blocked';
  return renderProblem({ reason, fix });
}

function shareLimits({ redis, platform }: Config, shell: Shell): SharedBudgets | undefined {
  if (redis === undefined) return undefined;
  return sharedBudgets({
    url: redis,
    organization: organizationOf(platform),
    worker: randomBytes(8).toString('hex'),
    clock: systemClock,
    random: Math.random,
    reserve: platform.reserve,
    openLink: shell.openLink,
    notice: (lost) =>
      shell.note(
        lost === undefined
          ? 'crm-mirror: Redis is there again: limits are shared again'
          : `crm-mirror: Redis is away (${lost}): this process keeps to the limits by itself`,
      ),
  });
}

/** Logs the requests. If that is switched off, deletes what was logged before. */
export function logRequests(
  { requests: { isOn, keepMs, bytes }, platform }: Config,
  { requests, forgetRequests }: Memory,
  shell: Shell,
): RequestLog | undefined {
  const warn = (reason: string): void => shell.note(`crm-mirror: ${reason}`);
  if (isOn) {
    const hides = [platform.apiKey];
    return collectRequests({ requests, keepMs, bytes, hides, clock: systemClock, warn });
  }
  forgetRequests();
  return undefined;
}

/**
 * Creates a connection to the platform that records what comes of each request, so that an outage
 * is known while the requests are still tried again.
 *
 *   answer            the platform   the API key
 *   none, or 5xx      fails
 *   401               works          refused
 *   2xx               works          works
 *   any other         works
 *
 * The time that an answer states tells whether the clock of this machine is right.
 */
export function watchedTransport(
  { url, timeoutMs, apiKeyFile }: Config['platform'],
  outages: OutageNotes,
): NonNullable<PlatformOptions['transport']> {
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
      const place = apiKeyFile ? `into ${apiKeyFile}` : 'where platform.apiKey is read from';
      const fix = `write a valid key ${place}, and run \`crm-mirror sync\``;
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
