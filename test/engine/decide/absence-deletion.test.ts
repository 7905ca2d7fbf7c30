/** When people who left the CRM are deleted: after their opt-out, at once, or by which clock. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const hour = 3_600_000;
const day = 24 * hour;
const person = (id: number, more: Record<string, unknown> = {}) => ({
  id: `${id}`,
  email: `p${id}@example.com`,
  ch_news: 'yes',
  ...more,
});
const everybody = [1, 2, 3, 4, 5].map((id) => person(id));
const without = (id: number) => everybody.filter((one) => one.id !== `${id}`);
const flagged = (id: number) =>
  everybody.map((one) => (one.id === `${id}` ? person(id, { deleted: 'true' }) : one));

async function mirrored({ policy, ...options }: StageOptions = {}): Promise<Stage> {
  const deletes = { absent: 'opt_out', deletes: 'owned' } as const;
  const stage = openStage({ policy: { ...deletes, ...policy }, ...options });
  stage.people.push(...everybody);
  await stage.sync();
  stage.writes();
  return stage;
}

/** The CRM's next export. */
function exportOf(stage: Stage, people: Record<string, unknown>[]): void {
  stage.people.splice(0, stage.people.length, ...people);
  Object.assign(stage.certificate, { reading: `at ${stage.clock.now()}` });
}

/** A full run on a new export that lacks a person, so long after the one before. */
async function missing(stage: Stage, afterMs: number): Promise<string[]> {
  await stage.clock.advance(afterMs);
  exportOf(stage, without(1));
  await stage.sync();
  return sent(stage);
}

const sent = (stage: Stage): string[] =>
  stage.writes().map(({ method, subscription }) => subscription ?? method);

describe('policy.deleteAfter', () => {
  const delayed = { absence: { deleteAfterMs: 30 * day } };

  test('opts missing people out when due, and deletes them that long afterwards', async () => {
    const stage = await mirrored(delayed);
    expect(await missing(stage, 0)).toEqual([]);
    expect(await missing(stage, 20 * hour)).toEqual(['opt_out']);
    expect(await missing(stage, 29 * day)).toEqual([]);
    expect(await missing(stage, day)).toEqual(['DELETE']);
    expect(await missing(stage, day)).toEqual([]);
  });

  test('opts people in again who are back in time, and starts over when they are missing again', async () => {
    const stage = await mirrored(delayed);
    await missing(stage, 0);
    await missing(stage, 20 * hour);
    await stage.clock.advance(20 * day);
    exportOf(stage, everybody);
    await stage.sync();
    expect(sent(stage)).toEqual(['opt_in']);
    await missing(stage, day);
    expect(await missing(stage, 20 * day)).toEqual(['opt_out']);
    expect(await missing(stage, 20 * day)).toEqual([]);
    expect(await missing(stage, 10 * day)).toEqual(['DELETE']);
  });

  test('starts with an opt-out that the platform acknowledged', async () => {
    const refusing = { is: true };
    const stage = await mirrored({
      ...delayed,
      wire: (send) => async (request, signal) =>
        refusing.is && /"opt_out"/.test(String(request.body))
          ? { status: 422, headers: {}, body: '{"message":"not now"}' }
          : send(request, signal),
    });
    await missing(stage, 0);
    await missing(stage, 20 * hour);
    await missing(stage, 40 * day);
    refusing.is = false;
    expect(await missing(stage, day)).toEqual(['opt_out']);
    expect(await missing(stage, 29 * day)).toEqual([]);
    expect(await missing(stage, day)).toEqual(['DELETE']);
  });

  test.each([
    [
      'had left on the platform',
      {},
      (stage: Stage) => void stage.emulator.dashboard.leave('p1@example.com', 'ch_news'),
    ],
    ['are kept subscribed (absent: keep)', { absent: 'keep' as const }, () => undefined],
  ])('counts people who %s from when they were due', async (_, policy, happens) => {
    const stage = await mirrored({ ...delayed, policy });
    happens(stage);
    await missing(stage, 0);
    await missing(stage, 10 * hour);
    expect(await missing(stage, 14 * hour)).toEqual([]);
    expect(await missing(stage, 29 * day + 23 * hour)).toEqual([]);
    expect((await missing(stage, hour)).at(-1)).toBe('DELETE');
  });

  test('when 0s, opts out and deletes in one run; with absentFor 0s after one reading', async () => {
    const none = { deleteAfterMs: 0, absentForMs: 0, absentReadings: 1 };
    const stage = await mirrored({ absence: none });
    expect(await missing(stage, 0)).toEqual(['opt_out', 'DELETE']);
  });
});

describe('people flagged as deleted in the CRM', () => {
  const runs: Record<string, (stage: Stage) => Promise<unknown>> = {
    full: (stage) => stage.sync(),
    fast: (stage) => stage.sync({ mode: 'fast' }),
    single: (stage) => stage.sync({ mode: { single: 'p1@example.com' }, only: 'contacts' }),
    record: (stage) => stage.sync({ mode: { record: '1' }, only: 'contacts' }),
  };

  test.each(Object.entries(runs))(
    'are opted out and deleted at once in a %s run',
    async (_, go) => {
      const stage = await mirrored({ absence: { deleteAfterMs: 30 * day } });
      exportOf(stage, flagged(1));
      await go(stage);
      expect(sent(stage)).toEqual(['opt_out', 'DELETE']);
      expect(stage.emulator.world.contact('p1@example.com')).toBeUndefined();
    },
  );

  test('are recognized by a CRM that lists changes', async () => {
    const stage = await mirrored({ tellsChanges: true });
    exportOf(stage, flagged(1));
    stage.changed.push('1');
    await stage.sync({ mode: 'fast' });
    expect(stage.asked.at(-1)).toMatch(/^since/);
    expect(sent(stage)).toEqual(['opt_out', 'DELETE']);
  });

  test('are not deleted by a first run, nor after an uncertified reading', async () => {
    const stage = openStage({ policy: { absent: 'opt_out', deletes: 'owned' } });
    stage.people.push(...everybody);
    await stage.sync({ mode: 'fast' });
    exportOf(stage, flagged(1));
    stage.writes();
    await stage.sync({ mode: 'fast' });
    expect(sent(stage)).toEqual(['opt_out']);
    await stage.sync();
    await stage.sync();
    expect(sent(stage)).toEqual(['DELETE']);
    exportOf(stage, flagged(2));
    Object.assign(stage.certificate, { complete: false, why: 'cut short', fix: 'export again' });
    await stage.sync({ mode: 'fast' });
    expect(sent(stage)).toEqual([]);
  });
});

describe('with a wrong clock', () => {
  /** Our clock by hours ahead of the platform's, in runs that are so many hours apart. */
  async function readings(
    runs: readonly { after: number; ahead: number }[],
    options: StageOptions = {},
  ): Promise<string[]> {
    const ours = { ahead: 0 };
    const stage = await mirrored({ ahead: () => ours.ahead * hour, ...options });
    for (const { after, ahead } of runs) {
      ours.ahead = ahead;
      await missing(stage, after * hour);
    }
    return stage.emulator.world
      .requests()
      .filter(({ method, subscription }) => method === 'DELETE' || subscription === 'opt_out')
      .map(({ method, subscription }) => subscription ?? method);
  }
  const both = ['opt_out', 'DELETE'];
  /** The platform tells a time that is wrong by so many hours. */
  const tells = (aheadIn: () => number | undefined) => ({
    wire:
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        const { date, ...headers } = answer.headers;
        const ahead = aheadIn();
        if (ahead === undefined) return { ...answer, headers };
        const told = new Date(Date.parse(date ?? '') + ahead * hour).toUTCString();
        return { ...answer, headers: { ...headers, date: told } };
      },
  });

  // prettier-ignore
  test.each<[string, { after: number; ahead: number }[], string[]]>([
    ['right all the time',                        [{ after: 0, ahead: 0 }, { after: 20, ahead: 0 }], both],
    ['30 days ahead later',                       [{ after: 0, ahead: 0 }, { after: 1, ahead: 720 }], []],
    ['ahead by the same all the time',            [{ after: 0, ahead: 720 }, { after: 20, ahead: 720 }], both],
  ])('our clock: %s', async (_, runs, expected) => {
    expect(await readings(runs)).toEqual(expected);
  });

  test('our clock alone counts nothing once the platform shows that it is wrong', async () => {
    const ours = { ahead: 0 };
    const told = tells(() => (ours.ahead === 0 ? undefined : 0));
    const stage = await mirrored({ ahead: () => ours.ahead * hour, ...told });
    await missing(stage, 0);
    ours.ahead = 720;
    expect(await missing(stage, hour)).toEqual([]);
  });

  test('nobody is deleted earlier', async () => {
    const absence = { deleteAfterMs: 30 * day };
    const runs = [
      { after: 0, ahead: 0 },
      { after: 20, ahead: 0 },
      { after: 24, ahead: 31 * 24 },
      { after: 24, ahead: 0 },
    ];
    expect(await readings(runs, { absence })).toEqual(['opt_out']);
    expect(await readings([...runs, { after: 29 * 24, ahead: 0 }], { absence })).toEqual(both);
  });
});
