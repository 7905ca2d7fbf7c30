/**
 * Reads the parties of a Tryton server over JSON-RPC. party-listing.ts explains merged parties.
 *
 * `read` reads all parties in ascending order of ids, including inactive ones. The count that
 * Tryton reports is the proof: nobody is missing if the number of parties read equals the count
 * before or after the read.
 *
 * `changes` requests the parties that were created or changed since then, and those with a changed
 * contact mechanism, because editing an address does not update its party. A party that was never
 * changed has no change time. Nothing reports deleted parties; full reads find them.
 *
 * Tryton cannot report whether anything has changed, so a read stays valid for a quarter of an
 * hour.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { certificateOf, type Flaw, holding, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { type Api, createApi } from './tryton-api.ts';
import { cursorsOf } from './change-cursor.ts';
import { createFields } from './field-selection.ts';
import { changedSince, createParties, everybody, settle } from './party-listing.ts';
import { createLogins } from './login-session.ts';
import type { TrytonOptions } from './options.ts';

type TrytonSource = Source & Required<Pick<Source, 'changes' | 'one' | 'still'>>;

/** Returns the source for a Tryton server. */
export function trytonSource(options: TrytonOptions, surroundings: Surroundings): TrytonSource {
  const { clock } = surroundings;
  const logins = createLogins(options);
  const known = createFields(clock);
  const open = ({ signal }: ReadRequest) => createApi({ options, logins, signal, ...surroundings });
  const { keep, still } = holding(clock);
  const begin = async (api: Api, { fields }: ReadRequest) => {
    const reading = `tryton-${clock.now()}`;
    const wanted = await known.now(api, fields);
    const cursors = await cursorsOf(api, options, { fields, wanted });
    const settling = { parties: createParties(api, wanted), records: jsonRecords(fields) };
    return { reading, cursors, settling };
  };
  const end = (reading: string, flaws: readonly Flaw[], cursor: string | undefined) => {
    keep(reading);
    return withCursor(certificateOf(reading, flaws), cursor);
  };
  return {
    async *read(request) {
      const api = open(request);
      try {
        const { reading, cursors, settling } = await begin(api, request);
        const flaws = yield* everybody(settling);
        const lack = settling.records.lacking();
        // A party that could not be read may contain the field.
        if (lack !== undefined && flaws.length === 0) throw new Invalid(`${api.host}: ${lack}`);
        return end(reading, flaws, cursors.after(api.startedAt()));
      } finally {
        await api.close();
      }
    },
    async *changes(since, request): AsyncGenerator<SourceRecord[], Certificate | 'lost'> {
      const api = open(request);
      try {
        const { reading, cursors, settling } = await begin(api, request);
        const sinceMs = cursors.read(since, api.startedAt());
        if (sinceMs === undefined) return 'lost';
        const flaws = yield* changedSince(settling, sinceMs);
        return end(reading, flaws, cursors.after(api.startedAt(), sinceMs) ?? since);
      } finally {
        await api.close();
      }
    },
    async one(id, { fields, signal }) {
      if (!/^[1-9]\d{0,14}$/.test(id)) return undefined;
      const api = open({ fields, signal });
      try {
        const parties = createParties(api, await known.lately(api, fields));
        const settling = { parties, records: jsonRecords(fields) };
        return (await settle(settling, await parties.some([Number(id)])))[0];
      } finally {
        await api.close();
      }
    },
    still,
  };
}
