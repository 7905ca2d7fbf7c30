import {
  createEmulator,
  type Emulator,
  type EmulatorOptions,
} from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { parseSeedFile } from '../../../src/emulator/seed/seed-file.ts';
import type { Clock } from '../../../src/domain/clock.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Send } from '../../../src/domain/exchange.ts';

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

/** Two organizations with one person, template and domain each, of the same names. */
const both = `
organizations:
  - id: org_a
    name: A
    keys:
      - { id: key_a, key: ${KEY}, name: Everything }
      - { id: key_read, key: k_read, name: Reader, permissions: read }
      - { id: key_write, key: k_write, name: Writer, permissions: "write, other" }
      - { id: key_none, key: k_none, permissions: "" }
      - { id: key_off, key: k_off, name: Off, enabled: false }
      - { id: key_gone, key: k_gone, revoked: true }
    users: [{ id: user_a, name: Ann, email: ann@a.example, session: s_a }]
    channels: [{ id: ch_a, name: A news }]
    people: [{ id: con_a, email: ann@example.org, channels: { ch_a: opt_in } }]
    templates: [{ id: tpl_a, name: Welcome }]
    domains: [{ id: dom_a, domain: mail.example.org }]
  - id: org_b
    keys: [{ id: key_b, key: k_b }]
    users: [{ name: Bob, email: bob@b.example, session: s_b }]
    channels: [{ id: ch_b, name: B news }]
    people: [{ id: con_b, email: ann@example.org }]
    templates: [{ id: tpl_b, name: Welcome }]
    domains: [{ id: dom_b, domain: mail.example.org }]
guests: [{ name: Zoe, email: zoe@example.org, session: s_none }]
`;

export function twoOrganizations(options: Partial<EmulatorOptions> = {}) {
  const platform = stage({
    apiKey: undefined,
    channels: [],
    seedFile: parseSeedFile('seed.yaml', both),
    ...options,
  });
  /** Asks with another key than that of organization A. */
  const askAs = (key: string, line: string, body?: unknown) =>
    platform.ask(line, body, { 'x-api-key': key });
  /** Asks with a session, and without any key. */
  function askIn(session: string, line: string) {
    const [method = '', path = ''] = line.split(' ');
    const cookie = `theme=dark; __Secure-app.session_token=${session}`;
    const { status, headers, body } = platform.handle({ method, path, headers: { cookie } });
    return { status, headers, json: JSON.parse(body) };
  }
  return { ...platform, askAs, askIn };
}

export interface WireOptions {
  clock: Clock;
  /** How long the client waits for an answer. */
  timeoutMs?: number;
}

/** A client's `send` to an emulator in the same process: faults are what a socket makes of them. */
export function toSend(
  emulator: Pick<Emulator, 'receive'>,
  { clock, timeoutMs = 10_000 }: WireOptions,
): Send {
  return async (request, signal) => {
    signal?.throwIfAborted();
    const headers = { ...request.headers, 'user-agent': 'test' };
    const delivery = emulator.receive({ ...request, headers });
    const waitMs = delivery.is === 'silence' ? timeoutMs : 0;
    await wait(clock, delivery.is === 'whole' ? delivery.delayMs : waitMs, signal);
    if (delivery.is === 'whole' && delivery.delayMs < timeoutMs) return delivery.answer;
    throw new Unavailable(`the emulator answered with ${delivery.is}`, { acted: 'maybe' });
  };
}

/** A request that is given up once it was written may have had its effect. */
async function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms === 0) return;
  try {
    await clock.sleep(ms, signal);
  } catch (cause) {
    throw new Unavailable('given up', { acted: 'maybe', cause });
  }
}
