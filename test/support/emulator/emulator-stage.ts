import { createEmulator, type EmulatorOptions } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';

/** 20 November 2026, noon: when every story begins. */
export const NOON = Date.UTC(2026, 10, 20, 12);

export const KEY = 'key_live_test';

export interface Seen {
  status: number;
  headers: Record<string, string>;
  // Tests read answers as a foreign program would: as whatever JSON they are.
  json: ReturnType<typeof JSON.parse>;
}

/** An emulator with the channels ch_news and ch_product, and time that moves only when told to. */
export function stage(options: Partial<EmulatorOptions> = {}) {
  let passedMs = 0;
  const emulator = createEmulator({
    clock: { now: () => NOON + passedMs, monotonic: () => passedMs },
    random: seeded(1),
    apiKey: KEY,
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: ['*=1000/1'],
    ...options,
  });

  function ask(line: string, body?: unknown, headers: Record<string, string> = {}): Seen {
    const [method = '', path = ''] = line.split(' ');
    const answer = emulator.handle({
      method,
      path,
      headers: { 'x-api-key': KEY, ...headers },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return { status: answer.status, headers: answer.headers, json: JSON.parse(answer.body) };
  }

  return {
    ...emulator,
    ask,
    pass(ms: number) {
      passedMs += ms;
    },
  };
}
