/**
 * The guard for stated opt-outs over random days: whatever column is wrong, mended or right, which
 * runs take place, and how our clock is put, nobody waits for longer than `holdFor` while runs take
 * place, and nobody whose opt-out is held is opted in. OPT_OUTS_SEED repeats a failure.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { channels, createStage, type Stage } from '../../support/engine/engine-stage.ts';
import { approve, exportOf, hour, person } from '../../support/engine/change-volume.ts';
import { extent } from '../../support/extent.ts';

const holdForMs = 72 * hour;
const everyMs = 6 * hour;
const people = 8;
const from = process.env['OPT_OUTS_SEED'];
const seed = Number(from ?? 20_260_102);

/** What the CRM says from then on of those from `first` on, so many. */
const edit = fc.record({
  first: fc.nat({ max: people - 1 }),
  many: fc.constantFrom(1, 1, 2, people),
  field: fc.constantFrom('ch_news', 'ch_news', 'ch_product'),
  says: fc.constantFrom('no', 'no', 'yes'),
});
const day = fc.record({
  edits: fc.array(edit, { maxLength: 2 }),
  mode: fc.constantFrom('full', 'fast'),
  approves: fc.constantFrom(false, false, false, true),
  /** By how much our clock is ahead from then on, in hours. */
  ahead: fc.constantFrom(0, 0, 0, -500, 40, 500),
  pauseMs: fc.constantFrom(everyMs, everyMs, 4 * everyMs),
});
type Day = typeof day extends fc.Arbitrary<infer T> ? T : never;

const channelsOf = (stage: Stage, email: string) =>
  new Map(
    stage.emulator.world.contact(email)?.channels.map((one) => [one.id, one.subscription]) ?? [],
  );

function edited(stage: Stage, { first, many, field, says }: Day['edits'][number]): void {
  for (const [at, record] of stage.people.entries()) {
    if (at >= first && at < first + many) record[field] = says;
  }
}

/** Since when each channel of a person waits; what waits no longer is forgotten. */
function noteWaiting(
  stated: Map<string, number>,
  { email, waiting, began }: { email: string; waiting: readonly string[]; began: number },
): void {
  for (const channel of channels) {
    const name = `${email} ${channel}`;
    if (waiting.includes(channel)) stated.set(name, stated.get(name) ?? began);
    else stated.delete(name);
  }
}

async function live(days: readonly Day[]): Promise<void> {
  let ahead = 0;
  const stage = createStage({
    guards: { opt_out: { percent: 10, floor: 1, holdForMs } },
    ahead: () => ahead,
  });
  stage.people.push(
    ...Array.from({ length: people }, (_, at) => person(at, { ch_product: 'yes' })),
  );
  await stage.sync();
  /** By the clock that never jumps: when an opt-out was first read that is still stated. */
  const stated = new Map<string, number>();
  for (const { edits, mode, approves, ahead: hours, pauseMs } of days) {
    for (const one of edits) edited(stage, one);
    exportOf(stage, [...stage.people]);
    ahead = hours * hour;
    const held = new Set<string>();
    const before = new Map(
      stage.people.map(({ email }) => [`${email}`, channelsOf(stage, `${email}`)]),
    );
    const began = stage.clock.monotonic();
    const { contacts, plan } = await stage.sync({ mode });
    for (const record of stage.people) {
      const email = `${record['email']}`;
      const now = channelsOf(stage, email);
      const waiting = channels.filter(
        (channel) => record[channel] === 'no' && now.get(channel) === 'opt_in',
      );
      noteWaiting(stated, { email, waiting, began });
      const wasOut = (channel: string) => before.get(email)?.get(channel) === 'opt_out';
      const joined = channels.filter((one) => wasOut(one) && now.get(one) === 'opt_in');
      expect({ email, joined: waiting.length > 0 ? joined : [] }).toEqual({ email, joined: [] });
      if (waiting.length > 0) held.add(email);
    }
    const late = [...stated].filter(([, since]) => began - since >= holdForMs);
    expect(late).toEqual([]);
    expect(contacts.held.opt_out).toBe(held.size);
    if (approves && contacts.held.opt_out > 0) approve(stage, plan);
    await stage.clock.advance(pauseMs);
  }
  stage.close();
}

test('nobody waits for longer than holdFor, and nobody with a held opt-out is opted in', async () => {
  const days = fc.array(day, { minLength: 4, maxLength: 14, size: 'max' });
  await fc.assert(fc.asyncProperty(days, live), {
    seed,
    numRuns: extent(6, 20),
    endOnFailure: false,
  });
});
