/**
 * Reports opt-outs to Salesforce, on the contact or lead itself: for all mail in Salesforce's own
 * field HasOptedOutOfEmail, and for a channel in the checkbox configured for it.
 *
 *   204                            reported
 *   ENTITY_IS_DELETED              reported: nobody can receive mail under that id
 *   404                            the organization does not have this record: rejected
 *   400 about the record itself    rejected, with the code
 *   anything else                  handled as for a read (protocol/api-refusal.ts); no more
 *                                  reports in this run
 */
import { pathSegment } from '../../domain/address-part.ts';
import type { Said, Surroundings } from '../shared/crm-request.ts';
import type { WriteBack, ReportResult } from '../write-back.ts';
import { createGrants, createSession } from './api-session.ts';
import { longId, objectOf } from './protocol/record-ids.ts';
import type { SalesforceOptions, SalesforceReturnsOptions } from './options.ts';
import { errorOf, refusalOf } from './protocol/api-refusal.ts';

const AT_ONCE = 20;

const ofRecord = new Set([
  'CANNOT_UPDATE_CONVERTED_LEAD',
  'DUPLICATES_DETECTED',
  'FIELD_CUSTOM_VALIDATION_EXCEPTION',
  'FIELD_FILTER_VALIDATION_EXCEPTION',
  'FIELD_INTEGRITY_EXCEPTION',
  'INSUFFICIENT_ACCESS_OR_READONLY',
  'MALFORMED_ID',
  'NOT_FOUND',
  'REQUIRED_FIELD_MISSING',
]);

export function salesforceReturns(
  options: SalesforceOptions,
  { fields = {} }: SalesforceReturnsOptions,
  surroundings: Surroundings,
): WriteBack {
  const grants = createGrants(options, surroundings);
  return {
    most: AT_ONCE,
    takes: ({ crmId, channel }) =>
      pathOf(crmId) !== undefined && (channel === '*' || Object.hasOwn(fields, channel)),
    async *tell(batch, signal) {
      const session = createSession({ options, grants, signal, ...surroundings });
      try {
        for (const { crmId, channel } of batch) {
          const body =
            channel === '*' ? { HasOptedOutOfEmail: true } : { [fields[channel] ?? '']: false };
          const accepts = [204, 400, 403, 404];
          const path = pathOf(crmId) ?? '';
          const said = await session.ask({ path, body, method: 'PATCH', accepts });
          yield said.status < 300 ? { is: 'told' } : toResult(said, session.host);
        }
      } finally {
        await session.close();
      }
    },
    look: () => `reported to ${new URL(options.url).host}, in its records`,
  };
}

function pathOf(crmId: string): string | undefined {
  const id = longId(crmId);
  const object = id && objectOf(id);
  return object && `/sobjects/${pathSegment(object)}/${pathSegment(id)}`;
}

function toResult(said: Said, host: string): ReportResult {
  const refusal = refusalOf(said);
  const { status, code } = refusal;
  if (code === 'ENTITY_IS_DELETED') return { is: 'told' };
  if (!ofRecord.has(code)) throw errorOf(refusal, host);
  return {
    is: 'rejected',
    reason:
      status === 404
        ? 'the organization does not have this record (404)'
        : `Salesforce refused it (${status} ${code})`,
    fix: 'correct the record there, or what its user may write',
  };
}
