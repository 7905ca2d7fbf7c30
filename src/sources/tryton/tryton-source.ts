/**
 * The parties of a Tryton as a source, by JSON-RPC. What a merge means stands in merged-parties.ts.
 *
 * `read` goes through all of them by rising ids, the inactive among them. It is proven by the count
 * that Tryton tells: nobody is missing when as many were read as there were before, or are after.
 *
 * `changes` asks for those who were made or changed since then, and those of whom a contact
 * mechanism was: an address that is edited does not touch its party. A party that was never changed
 * has no time of change at all. Nothing tells of what was deleted: that full readings see.
 *
 * What is read cannot be asked whether it still holds; it counts for a quarter of an hour.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { certificateOf, type Flaw, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { createApi, type Api } from './tryton-api.ts';
import { cursorsOf } from './change-cursor.ts';
import { createFields } from './field-selection.ts';
import { changedSince, everybody } from './party-listing.ts';
import { createLogins } from './login-session.ts';
import type { TrytonOptions } from './options.ts';
import { holding } from '../shared/reading-lifetime.ts';
import { createParties } from './party-reader.ts';
import { settle } from './merged-parties.ts';

type TrytonSource = Source & Required<Pick<Source, 'changes' | 'one' | 'still'>>;

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
        // Who was not read may have it.
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
