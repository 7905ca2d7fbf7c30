/**
 * Reports opt-outs to HubSpot: an opt-out from one subscription through version 3 of its
 * communication preferences API, and one from all mail through version 4. Both identify the person
 * by address. An opt-out of a person who has already unsubscribed counts as reported.
 */
import { pathSegment } from '../../domain/address-part.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { createAsking, type CrmRequest, type Surroundings } from '../shared/crm-request.ts';
import type { ReportResult, WriteBack } from '../write-back.ts';
import type { HubspotOptions, HubspotReturnsOptions } from './options.ts';
import { askPatiently, createPace, readToken } from './hubspot-api.ts';

const AT_ONCE = 20;
const MOST_WAIT_MS = 20_000;
const accepts = [200, 201, 202, 204, 400, 404];
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
      const around = { pace, ...surroundings };
      const ask = askPatiently(asking, around, { accepts, mostWaitMs: MOST_WAIT_MS });
      try {
        for (const one of batch) {
          const said = await ask(toRequest(one), signal);
          yield toResult(said?.status ?? 404, said?.value);
        }
      } finally {
        await asking.close();
      }
    },
    look: () => `reported to ${new URL(url).host}, in its communication preferences`,
  };
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
