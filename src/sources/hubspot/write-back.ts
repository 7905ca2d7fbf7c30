/**
 * Reports opt-outs to HubSpot: an opt-out from one subscription through version 3 of its
 * communication preferences API, and one from all mail through version 4. Both identify the person
 * by address. An opt-out of a person who has already unsubscribed counts as reported.
 */
import type { Clock } from '../../domain/clock.ts';
import { pathSegment } from '../../domain/address-part.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import { RateLimited } from '../../domain/errors.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import {
  type Asking,
  createAsking,
  type CrmRequest,
  type Surroundings,
} from '../shared/crm-request.ts';
import type { ReportResult, WriteBack } from '../write-back.ts';
import type { HubspotOptions, HubspotReturnsOptions } from './options.ts';
import { createPace, laterBy, type Pace, readToken } from './hubspot-api.ts';

const AT_ONCE = 20;
const MOST_WAIT_MS = 20_000;
const later = [429, 423, 477];
const mend = { credentials: 'the token', request: 'url' };
const explanation = 'The person unsubscribed on the email platform.';

export function hubspotReturns(
  options: HubspotOptions,
  { subscriptions = {}, legalBasis }: HubspotReturnsOptions,
  surroundings: Surroundings,
): WriteBack {
  const { url, timeoutMs } = options;
  const pace = createPace();
  const toRequest = ({ email, channel }: OptOutReport): CrmRequest => {
    const all = `/communication-preferences/v4/statuses/${pathSegment(email)}/unsubscribe-all?channel=EMAIL`;
    if (channel === '*') return { address: new URL(all, url).href, method: 'POST' };
    const content = {
      emailAddress: email,
      subscriptionId: subscriptions[channel],
      ...(legalBasis && { legalBasis, legalBasisExplanation: explanation }),
    };
    return {
      address: new URL('/communication-preferences/v3/unsubscribe', url).href,
      body: { type: 'application/json', text: JSON.stringify(content) },
    };
  };
  return {
    most: AT_ONCE,
    takes: ({ channel }) => channel === '*' || Object.hasOwn(subscriptions, channel),
    async *tell(batch, signal) {
      const headers = { authorization: `Bearer ${readToken(options)}` };
      const how = { url, headers, timeoutMs, mend, mostWaitMs: MOST_WAIT_MS };
      const asking = createAsking(how, surroundings);
      const around = { pace, ...surroundings, signal };
      try {
        for (const one of batch) yield await report(asking, toRequest(one), around);
      } finally {
        await asking.close();
      }
    },
    look: () => `reported to ${new URL(url).host}, in its communication preferences`,
  };
}

/** Sends one report and waits as long as HubSpot demands, up to 20 seconds. */
async function report(
  asking: Asking,
  question: CrmRequest,
  { pace, clock, signal }: { pace: Pace; clock: Clock; signal: AbortSignal },
): Promise<ReportResult> {
  for (let waitedMs = 0; ;) {
    const turnMs = pace.waitMs({ isSearch: false }, clock.monotonic());
    if (turnMs > 0) await clock.sleep(turnMs, signal);
    const said = await asking.ask(
      { ...question, accepts: [200, 201, 202, 204, 400, 404, ...later] },
      signal,
    );
    const status = said?.status ?? 404;
    if (said) pace.hear(said.headers, clock.monotonic());
    if (!said || !later.includes(status)) return toResult(status, said?.value);
    const laterMs = laterBy(said, clock.now());
    waitedMs += laterMs === 'day' ? MOST_WAIT_MS : laterMs;
    if (laterMs === 'day' || waitedMs > MOST_WAIT_MS) {
      const what = `${asking.host} asks to wait (${status})`;
      const detail = { retryAfterMs: waitedMs, route: asking.host };
      throw new RateLimited(what, { ...detail, fix: 'run less often, or have its limit raised' });
    }
    await clock.sleep(laterMs, signal);
  }
}

function toResult(status: number, value: unknown): ReportResult {
  if (status < 300) return { is: 'told' };
  const message = fieldAt(value, 'message');
  const says = typeof message === 'string' ? message : '';
  if (/already (?:been )?(?:unsubscribed|opted out)/i.test(says)) return { is: 'told' };
  if (status === 404) {
    const reason = 'HubSpot does not have this person, or subscription (404)';
    return { is: 'rejected', reason, fix: 'correct subscriptions of returns' };
  }
  const isBasis = /legal ?basis/i.test(says);
  return {
    is: 'rejected',
    reason: `HubSpot refused it (${status})`,
    fix: isBasis ? 'add legalBasis to returns' : 'correct subscriptions of returns',
  };
}
