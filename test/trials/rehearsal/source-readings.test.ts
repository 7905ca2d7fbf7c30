/** Each source is read once, however many runs read it. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/http/system-clock.ts';
import { createReadings } from '../../../src/trials/rehearsal/observe-original.ts';
import type { Source } from '../../../src/sources/source.ts';
import { virtualClock } from '../../support/waiting.ts';

const request = { fields: ['id'], signal: new AbortController().signal };
const certificate = { complete: true as const, reading: 'one' };

/** A source that counts its readings, and fails as often as it is told to. */
function counting(failures = 0) {
  const seen = { readings: 0 };
  const source: Source = {
    async *read() {
      seen.readings += 1;
      yield [{ where: 'line 2', value: { id: seen.readings } }];
      await systemClock.sleep(5);
      if (seen.readings <= failures) throw new Error('away');
      return certificate;
    },
    still: () => false,
  };
  return { seen, source };
}

async function read(source: Source, fields = ['id']) {
  const reading = source.read({ ...request, fields });
  const values: unknown[] = [];
  for (;;) {
    const next = await reading.next();
    if (next.done === true) return { values, certificate: next.value };
    values.push(...next.value.map((one) => ('value' in one ? one.value : one)));
  }
}

const atOnce = async <T>(real: Promise<T>) => real;

test('a second reading of the same fields gives the same records', async () => {
  const { seen, source } = counting();
  const readings = createReadings();
  const first = await read(readings.of('people', source, atOnce));
  expect(await read(readings.of('people', source, atOnce))).toEqual(first);
  expect(first).toEqual({ values: [{ id: 1 }], certificate });
  expect(seen.readings).toBe(1);
  await read(readings.of('people', source, atOnce), ['id', 'email']);
  await read(readings.of('others', source, atOnce));
  expect(seen.readings).toBe(3);
});

test('a source counts as unchanged while the rehearsal lasts', () => {
  const { source } = counting();
  expect(createReadings().of('people', source, atOnce).still?.('one')).toBe(true);
});

test('a reading that failed is not kept', async () => {
  const { seen, source } = counting(1);
  const readings = createReadings();
  await expect(read(readings.of('people', source, atOnce))).rejects.toThrow('away');
  expect(await read(readings.of('people', source, atOnce))).toMatchObject({ certificate });
  expect(seen.readings).toBe(2);
});

test('no virtual time passes while a source is really read', async () => {
  const clock = virtualClock();
  const { source } = counting();
  const slept: number[] = [];
  void clock.sleep(10).then(() => slept.push(clock.monotonic()));
  const reading = read(createReadings().of('people', source, clock.hold)).then(() =>
    clock.monotonic(),
  );
  expect(await clock.run(reading)).toBe(0);
  expect(slept).toEqual([]);
});
