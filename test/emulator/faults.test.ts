import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { EmulatorOptions } from '../../src/emulator/emulator.ts';
import { faultKinds } from '../../src/emulator/faults/faults.ts';
import { serve } from '../../src/emulator/http-listener.ts';
import { createSend } from '../../src/http/send-request.ts';
import type { Request, Send } from '../../src/domain/exchange.ts';
import { virtualClock } from '../support/waiting.ts';
import { KEY, stage, toSend } from '../support/emulator/emulator-stage.ts';

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const enrol: Request = {
  method: 'POST',
  path: '/api/contacts/channel/ch_news',
  headers: { 'x-api-key': KEY },
  body: JSON.stringify({ email: 'ann@example.org' }),
};
const TIMEOUT_MS = 500;

/** How it ends for a client, and whether the enrolment came to pass. */
const endings: Record<string, { ends: object | string; acts: boolean }> = {
  '500': { ends: { status: 500 }, acts: false },
  '500-after': { ends: { status: 500 }, acts: true },
  '429': { ends: { status: 429, headers: { 'retry-after': '1' } }, acts: false },
  'reset-before': { ends: 'maybe', acts: false },
  'reset-after': { ends: 'maybe', acts: true },
  'timeout-before': { ends: 'maybe', acts: false },
  'timeout-after': { ends: 'maybe', acts: true },
  garbage: { ends: { status: 201, body: expect.stringMatching(/^<!doctype/) }, acts: true },
  half: { ends: 'maybe', acts: true },
};

async function check(send: Send, ends: object | string) {
  const answer = send(enrol);
  if (typeof ends === 'object') expect(await answer).toMatchObject(ends);
  else await expect(answer).rejects.toMatchObject({ name: 'Unavailable', acted: ends });
}

test('every kind of fault is tried here', () => {
  expect([...Object.keys(endings), 'slow'].toSorted()).toEqual(
    faultKinds.map(({ name }) => name).toSorted(),
  );
});

describe.each(Object.entries(endings))('%s', (fault, { ends, acts }) => {
  test('in one process', async () => {
    const clock = virtualClock();
    const platform = stage({ faults: [fault] });
    const send = toSend(platform, { clock, timeoutMs: TIMEOUT_MS });
    await clock.run(check(send, ends));
    expect(platform.world.contacts()).toHaveLength(acts ? 1 : 0);
    expect(platform.world.requests()).toMatchObject([{ route: 'contacts.enrol', fault }]);
  });

  test('over a socket', async () => {
    const platform = stage({ faults: [fault] });
    const { send } = await connect(platform);
    await check(send, ends);
    expect(platform.world.contacts()).toHaveLength(acts ? 1 : 0);
    platform.fail([]);
    expect(await send(enrol)).toMatchObject({ status: acts ? 409 : 201 });
  });
});

async function connect(platform: ReturnType<typeof stage>) {
  const { url, close } = await serve(platform, 0);
  closing.push(close);
  const client = createSend({ url, timeoutMs: TIMEOUT_MS, userAgent: 'test' });
  closing.push(client.close);
  return client;
}

describe('slow', () => {
  test('in one process: one to five seconds', async () => {
    const clock = virtualClock();
    const platform = stage({ faults: ['slow'] });
    const send = toSend(platform, { clock });
    const before = clock.monotonic();
    expect(await clock.run(send(enrol))).toMatchObject({ status: 201 });
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(1000);
    expect(clock.monotonic() - before).toBeLessThanOrEqual(5000);
  });

  test('over a socket: the change is made long before the answer', async () => {
    const platform = stage({ faults: ['slow'] });
    const { send } = await connect(platform);
    await expect(send(enrol)).rejects.toMatchObject({ acted: 'maybe' });
    expect(platform.world.contacts()).toHaveLength(1);
  });

  test('the emulator still closes at once', async () => {
    const platform = stage({ faults: ['timeout-after'] });
    const { url, close } = await serve(platform, 0);
    const waiting = fetch(`${url}/api/contacts/list`).catch(() => 'cut');
    await pause(50);
    await close();
    expect(await waiting).toBe('cut');
  });
});

describe('which requests fail', () => {
  const LIST = { method: 'GET', path: '/api/contacts/list', headers: { 'x-api-key': KEY } };

  function played(options: Partial<EmulatorOptions>, count: number, request = LIST): string {
    const platform = stage(options);
    const kinds = Array.from({ length: count }, () => platform.receive(request).is.charAt(0));
    return kinds.join('');
  }

  test('are a share of them, the same for the same seed', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(0.1, 0.5, 0.9), (number, rate) => {
        const tell = () => {
          let state = number;
          const random = () => (state = (state * 16_807 + 7) % 2_147_483_647) / 2_147_483_647;
          return played({ random, faults: [`reset-before=${rate}`] }, 400);
        };
        const seen = tell();
        expect(tell()).toBe(seen);
        expect(Math.abs(seen.replaceAll('w', '').length / 400 - rate)).toBeLessThan(0.12);
      }),
      { numRuns: 30 },
    );
  });

  test('are those of the named route, or of all routes, and never an unknown path', () => {
    expect(played({ faults: ['reset-after@contacts.enrol'] }, 2)).toBe('ww');
    expect(played({ faults: ['reset-after=1@contacts.list'] }, 2)).toBe('rr');
    expect(played({ faults: ['reset-after@*'] }, 2)).toBe('rr');
    const other = { ...LIST, path: '/_emulator/state' };
    expect(played({ faults: ['reset-after'] }, 2, other)).toBe('ww');
    expect(played({ faults: ['reset-after=0'] }, 2)).toBe('ww');
  });

  test('meet the first of several named faults', () => {
    expect(played({ faults: ['timeout-before=0', 'half', 'reset-before'] }, 1)).toBe('h');
  });

  test('are logged, and count for no limit when the platform never saw them', () => {
    const platform = stage({ faults: ['reset-before'], limits: ['*=1/60'] });
    platform.receive(LIST);
    platform.fail(['500']);
    platform.receive(LIST);
    platform.fail([]);
    expect(platform.ask('GET /api/contacts/list').status).toBe(200);
    expect(platform.world.requests()).toMatchObject([
      { status: 0, fault: 'reset-before' },
      { status: 500, fault: '500' },
      { status: 200 },
    ]);
  });

  test.each([
    ['explode', /^fault "explode" is not known: write kind, .*kinds are 500, .*half$/],
    ['500=2', 'the rate goes from 0 to 1'],
    ['500=-1', 'is not known'],
    ['500@nowhere', /names no route: use one of contacts\.list, .* or \* for all/],
  ])('%s is refused', (text, message) => {
    expect(() => stage({ faults: [text] })).toThrow(message);
  });
});
