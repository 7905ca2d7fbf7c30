/**
 * A Salesforce organization as a source: its contacts, its leads, or both, by the REST API, and by
 * the Bulk API where there are many.
 *
 * Who is deleted there lies in the recycle bin for 15 days. Where the configuration names
 * `IsDeleted` they come with it, and else not at all. Three kinds of record are no person any more,
 * but stand for one:
 *
 * - Of two records that were merged the loser is deleted, and names the winner. It comes as the
 *   winner's record under its own id: to the engine somebody whose address changed, so that
 *   what is recorded of her goes along; and as a second record of the winner's address, of which
 *   the strictest counts. She has opted out when one of the two says so.
 * - The winner may have been merged on, or deleted: that is followed. Where it leads nowhere, the
 *   loser is somebody deleted.
 * - A lead that was converted became a contact, and comes as that under its own id, likewise. Where
 *   contacts are not read, or not that one, it does not come.
 *
 * As nothing of theirs changes when that one does, `changes` looks for them.
 *
 * The certificate rests on the count that each query tells, by different ids. An answer that cannot
 * be had once something was yielded ends the reading without one. The cursor is when the reading
 * began, by the organization's own clock, less the overlap.
 */
import type { Condition } from '../../domain/condition.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { certificateOf, withCursor } from '../shared/read-certificate.ts';
import type { ReadRequest, Source } from '../source.ts';
import { holding } from '../shared/reading-lifetime.ts';
import { createGrants } from './access-grant.ts';
import { createCursors } from './change-cursor.ts';
import { longId, objectOf } from './protocol/record-ids.ts';
import { changedSince, everybody } from './record-listing.ts';
import type { SalesforceOptions } from './options.ts';
import { createReader, type OptOutField, type Reader } from './record-reader.ts';
import { createSession, type Session } from './api-session.ts';
import { shapesOf, type Shape } from './field-selection.ts';
import { settle } from './merged-records.ts';

const SHAPES_HOLD_MS = 10 * 60_000;

type SalesforceSource = Source & Required<Pick<Source, 'changes' | 'one' | 'still'>>;

/** A field that may say an opt-out, besides Salesforce's own; or a condition. */
type OptOut = OptOutField | { readonly when: Condition } | undefined;

export function salesforceSource(
  options: SalesforceOptions,
  { unsubscribed, ...surroundings }: Surroundings & { unsubscribed: OptOut },
): SalesforceSource {
  const { clock } = surroundings;
  const readerOf = readers(options, unsubscribed, clock);
  const grants = createGrants(options, surroundings);
  const sessionOf = ({ signal }: ReadRequest) =>
    createSession({ options, grants, signal, ...surroundings });
  const { keep, still } = holding(clock);
  return {
    async *read(request) {
      const reading = `salesforce-${clock.now()}`;
      const session = sessionOf(request);
      try {
        const reader = await readerOf(session, request, 'asked now');
        const { bulkAbove } = options;
        const flaws = yield* everybody(reader, { bulkAbove, clock, signal: request.signal });
        keep(reading);
        const cursor = createCursors(options, request.fields).after(session.startedAt());
        return withCursor(certificateOf(reading, flaws), cursor);
      } finally {
        await session.close();
      }
    },
    async *changes(since, request) {
      const cursors = createCursors(options, request.fields);
      const reading = `salesforce-${clock.now()}`;
      const session = sessionOf(request);
      try {
        const reader = await readerOf(session, request, 'asked now');
        const time = cursors.read(since, session.startedAt());
        if (time === undefined) return 'lost';
        const flaws = yield* changedSince(reader, time);
        keep(reading);
        const cursor = cursors.after(session.startedAt(), since);
        return withCursor(certificateOf(reading, flaws), cursor);
      } finally {
        await session.close();
      }
    },
    async one(wanted, request) {
      const id = longId(wanted);
      const object = id && objectOf(id);
      if (id === undefined || !options.objects.some((name) => name === object)) return undefined;
      const session = sessionOf(request);
      try {
        const reader = await readerOf(session, request, 'as known');
        const [record] = await settle(reader, await reader.lookUp([id]));
        return record;
      } finally {
        await session.close();
      }
    },
    still,
  };
}

type ReaderOf = (
  session: Session,
  request: ReadRequest,
  how: 'asked now' | 'as known',
) => Promise<Reader>;

/**
 * What an object has is asked at the beginning of each reading: its answer also tells when that
 * was. For a single record it may be known from shortly before.
 */
function readers(
  options: SalesforceOptions,
  unsubscribed: OptOut,
  clock: Surroundings['clock'],
): ReaderOf {
  const { objects } = options;
  const own = unsubscribed && 'field' in unsubscribed ? unsubscribed : undefined;
  const standard = own?.field === standardOptOut.field ? [] : [standardOptOut];
  const optOuts = [...standard, ...(own ? [own] : [])];
  const optsOut = unsubscribed && 'when' in unsubscribed ? unsubscribed.when : undefined;
  let known: { fields: string; at: number; shapes: Shape[] } | undefined;
  return async (session, request, how) => {
    const fields = request.fields.join(' ');
    const isYoung = known?.fields === fields && clock.now() - known.at < SHAPES_HOLD_MS;
    if (!known || !isYoung || how === 'asked now') {
      const shapes = await shapesOf(session, { objects, fields: request.fields });
      known = { fields, at: clock.now(), shapes };
    }
    const { shapes } = known;
    return createReader({ session, shapes, options, fields: request.fields, optOuts, optsOut });
  };
}

/** A checkbox. */
const standardOptOut: OptOutField = {
  field: 'HasOptedOutOfEmail',
  says: (value) => (value === true || value === 'true' ? 'yes' : 'no'),
};
