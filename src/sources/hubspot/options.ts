import { z } from 'zod';
import { isHeaderText, reporter, requireOne, says, text } from '../../domain/schema-fields.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { overlap, requestTimeout } from '../shared/option-fields.ts';

const noToken = says('is empty or holds what a header cannot carry', 'write the token alone');

export const hubspotOptions = z
  .strictObject({
    type: z.literal('hubspot').describe('The contacts of a HubSpot account'),
    token: z
      .string()
      .refine(isHeaderText, noToken)
      .describe('Access token of an app of the account; take it from the environment with ${NAME}')
      .optional(),
    tokenFile: text('File that contains the token, instead of token').optional(),
    url: text("Address of HubSpot's API").prefault('https://api.hubapi.com'),
    timeoutMs: requestTimeout(30_000),
    overlap: overlap("Maximum delay until HubSpot's search shows a change"),
  })
  .superRefine((given, context) => {
    const wrong = reporter(context);
    const url = URL.parse(given.url);
    if (!url || !/^https?:$/.test(url.protocol))
      wrong('url', 'is no web address', 'write https://HOST');
    else if (url.username || url.password)
      wrong('url', 'holds a user or password', 'move it to token');
    else if (url.pathname !== '/' || url.search || url.hash)
      wrong('url', 'holds more than a host', 'end it before the path');
    else if (url.protocol !== 'https:' && !isLoopback(given.url))
      wrong('url', 'would send people and the token unencrypted', 'use https');
    requireOne(context, given, 'token', 'tokenFile');
  });
export type HubspotOptions = z.infer<typeof hubspotOptions>;

/** The options for reporting opt-outs. The account and the token are those of the source. */
export const hubspotReturnsOptions = z.strictObject({
  type: z.literal('hubspot').describe('Changes subscriptions in the HubSpot account of the source'),
  subscriptions: z
    .record(
      z.string(),
      z.coerce.string().regex(/^\d{1,19}$/, says('is no id of a subscription', 'write its number')),
    )
    .describe(
      "For each channel, the id of HubSpot's subscription type; other channels are not reported",
    )
    .optional(),
  legalBasis: z
    .enum([
      'CONSENT_WITH_NOTICE',
      'LEGITIMATE_INTEREST_CLIENT',
      'LEGITIMATE_INTEREST_OTHER',
      'LEGITIMATE_INTEREST_PQL',
      'NON_GDPR',
      'PERFORMANCE_OF_CONTRACT',
      'PROCESS_AND_STORE',
    ])
    .describe('Legal basis that HubSpot records, if the account requires one')
    .optional(),
});
export type HubspotReturnsOptions = z.infer<typeof hubspotReturnsOptions>;
