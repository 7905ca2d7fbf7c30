/**
 * Reads the contacts of a HubSpot account. contact-record.ts explains merged contacts.
 *
 * `read` reads the list of active contacts, then the list of archived ones. A contact that is
 * archived meanwhile is in the second list at the latest; in the reverse order it might be in
 * neither list. A contact that is restored meanwhile may be missing from both. It was archived
 * before, and a single read draws no conclusion. Each list ends when HubSpot names no next page,
 * and the ends of both lists together are the proof of completeness.
 *
 * `changes` uses the search only to find which contacts changed. Because the search index lags
 * behind, its values could be older than what an event has already read, so the values are read by
 * id. The search does not find archived contacts, and no list is ordered by time; the next full
 * read finds them, or an event does. The start time of a read comes from HubSpot's clock, because
 * it is compared with the times of changes.
 *
 * HubSpot cannot report whether anything has changed, so a read stays valid for a quarter of an
 * hour.
 */
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import {
  brokenFlaw,
  certificateOf,
  type Flaw,
  holding,
  withCursor,
  stoppedBy,
} from '../shared/read-certificate.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { type Api, createApi, tokenOf } from './hubspot-api.ts';
import { contactRecords } from './contact-record.ts';
import type { HubspotOptions } from './options.ts';
import { createPace } from './request-pace.ts';
import { changedPages, listedPages, type Sheet } from './contact-pages.ts';
import { createProperties } from './property-selection.ts';

type Changed = Certificate | 'lost';

/** Returns the source of a HubSpot account. */
export function hubspotSource(options: HubspotOptions, surroundings: Surroundings): Source {
  const { clock } = surroundings;
  const around = { ...surroundings, pace: createPace() };
  const wanted = createProperties(clock);
  const overlapMs = milliseconds(options.overlap);
  const { keep, still } = holding(clock);
  const open = async () => createApi({ ...options, token: await tokenOf(options) }, around);
  const certified = (reading: string, flaws: readonly Flaw[], cursor: string | undefined) => {
    keep(reading);
    return withCursor(certificateOf(reading, flaws), cursor);
  };
  return {
    async *read({ fields, signal }) {
      const reading = `hubspot-${clock.now()}`;
      const api = await open();
      try {
        const { properties, at } = await wanted.now(api, { fields, signal });
        const flaws = yield* recordsOf(listedPages({ api, properties, signal }), fields);
        const cursor = at === undefined ? undefined : cursorAt(at - overlapMs);
        return certified(reading, flaws, cursor);
      } finally {
        await api.close();
      }
    },
    async *changes(since, { fields, signal }): AsyncGenerator<SourceRecord[], Changed> {
      const reading = `hubspot-${clock.now()}`;
      const fromMs = Date.parse(since);
      if (Number.isNaN(fromMs)) return 'lost';
      const api = await open();
      try {
        const { properties, at = fromMs } = await wanted.now(api, { fields, signal });
        // HubSpot's clock was set back, or this is another account. Changes made before the old
        // time would be missing from the list.
        if (fromMs > at) return 'lost';
        const flaws = yield* recordsOf(changedPages({ api, properties, signal }, fromMs), fields);
        return certified(reading, flaws, cursorAt(Math.max(fromMs, at - overlapMs)));
      } finally {
        await api.close();
      }
    },
    async one(id, request) {
      if (!/^[1-9]\d{0,19}$/.test(id)) return undefined;
      const api = await open();
      try {
        return await single(api, { id, properties: await wanted.lately(api, request), request });
      } finally {
        await api.close();
      }
    },
    still,
  };
}

interface Asked {
  id: string;
  properties: readonly string[];
  request: ReadRequest;
}

/** Reads one contact. If a merged contact is requested, HubSpot returns the remaining one. */
async function single(api: Api, asked: Asked): Promise<SourceRecord | undefined> {
  const { id, properties, request } = asked;
  for (const archived of [false, true]) {
    const found = await api.one(id, { properties, archived }, request.signal);
    if (!found) continue;
    const origin = { where: `contact ${id}`, text: found.text, archived };
    return contactRecords(request.fields).one(id, found.values[0], origin);
  }
  return undefined;
}

/**
 * Yields the records of all pages. A failure after the first page ends the read, and the records
 * read so far are kept.
 */
async function* recordsOf(
  sheets: AsyncGenerator<Sheet, void>,
  fields: readonly string[],
): AsyncGenerator<SourceRecord[], Flaw[]> {
  const records = contactRecords(fields);
  const broken: string[] = [];
  let pages = 0;
  try {
    for await (const { values, ...origin } of sheets) {
      pages += 1;
      const batch = values.flatMap((value, at) =>
        records.all(value, { ...origin, where: `page ${pages}, contact ${at + 1}` }),
      );
      broken.push(...batch.flatMap((record) => ('broken' in record ? [record.where] : [])));
      if (batch.length > 0) yield batch;
    }
  } catch (error) {
    return [stoppedBy(error, { hasBegun: pages > 0, where: `at page ${pages + 1}` })];
  }
  const fix = 'mend those contacts in HubSpot';
  const [first] = broken;
  return broken.length > 0 ? [brokenFlaw('contact', { count: broken.length, first, fix })] : [];
}

function cursorAt(ms: number): string {
  return new Date(ms).toISOString();
}
