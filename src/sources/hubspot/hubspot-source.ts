/**
 * The contacts of a HubSpot account as a source. What a merge means stands in contact-record.ts.
 *
 * `read` goes through the list of those who are there, and then through the archived. Whoever is
 * archived meanwhile is in the second one at the latest; the other way round she might be in
 * neither. Whoever is restored meanwhile may be missing from both; she was gone before, and one
 * reading concludes nothing. Each list ends where HubSpot names no next page; both are the proof.
 *
 * `changes` asks the search who was changed, and nothing else of it: its index is late, and lets
 * what an event has read already seem to be older. The values are read by id. Who is archived is
 * not found by search, nor in any order of time: of her the next full reading tells, or an event.
 * HubSpot's clock says when a reading began, since its times are compared with that.
 *
 * What is read cannot be asked whether it still holds; it counts for a quarter of an hour.
 */
import { milliseconds } from '../../domain/values/config-value.ts';
import { Interrupted, isExpected } from '../../domain/errors.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { brokenFlaw, certificateOf, type Flaw, withCursor } from '../shared/read-certificate.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { holding } from '../shared/reading-lifetime.ts';
import { type Api, createApi } from './hubspot-api.ts';
import { contactRecords } from './contact-record.ts';
import type { HubspotOptions } from './options.ts';
import { createPace } from './request-pace.ts';
import { changedPages, listedPages, type Sheet } from './contact-pages.ts';
import { createProperties } from './property-selection.ts';
import { tokenOf } from './access-token.ts';

type Changed = Certificate | 'lost';

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
        // Its clock was put back, or it is another account's: what happened until then is not told.
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

/** HubSpot answers the winner of a merge to whoever asks for a loser. */
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

/** An answer that cannot be had after the first page ends it: what was read is not lost. */
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
    if (pages === 0 || !isExpected(error) || error instanceof Interrupted) throw error;
    return [stoppedBy(error, pages + 1)];
  }
  const fix = 'mend those contacts in HubSpot';
  const [first] = broken;
  return broken.length > 0 ? [brokenFlaw('contact', { count: broken.length, first, fix })] : [];
}

function stoppedBy(error: Error, number: number): Flaw {
  const [what = '', fix = 'read it again'] = error.message.split(' → ');
  return { why: `reading stopped at page ${number}: ${what}`, fix };
}

function cursorAt(ms: number): string {
  return new Date(ms).toISOString();
}
