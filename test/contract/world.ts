/** What the emulator of the contract begins with: two organizations, keys, people, sessions. */
import { onTestFinished } from 'vitest';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import { serve } from '../../src/emulator/http-listener.ts';

export const KEY = 'key_live_full';

const organization = {
  id: 'org_a',
  users: [{ id: 'user_a', name: 'Ada', email: 'ada@example.org', session: 'session_of_a_member' }],
  keys: [
    { id: 'key_read', key: 'key_live_read', permissions: 'read' },
    { id: 'key_write', key: 'key_live_write', permissions: 'write' },
    { id: 'key_off', key: 'key_live_off', enabled: false },
    { id: 'key_gone', key: 'key_live_gone', revoked: true },
  ],
  domains: [{ id: 'dom_a', domain: 'a.example.com' }],
};
const other = {
  id: 'org_b',
  keys: [{ id: 'key_b', key: 'key_live_other' }],
  channels: [{ id: 'ch_b', name: 'Theirs' }],
  people: [{ id: 'con_b', email: 'bea@example.org' }],
  templates: [{ id: 'tpl_b', name: 'Theirs' }],
  domains: [{ id: 'dom_b', domain: 'b.example.com' }],
};
const guests = [
  { id: 'user_g', name: 'Gus', email: 'gus@example.org', session: 'session_of_a_guest' },
];

export const member = 'app.session_token=session_of_a_member';
export const guest = 'app.session_token=session_of_a_guest';

/** The people of the first organization; its newest comes first. */
const people = [
  { id: 'con_ann', email: 'ann@example.org', firstName: 'Ann', properties: { city: 'Berlin' } },
  { id: 'con_bob', email: 'bob@example.org', status: 'unsubscribed' as const },
  {
    id: 'con_cid',
    email: 'cid@example.org',
    status: 'blocked' as const,
    suppressionReason: 'spam',
  },
];

function createWorld(limits: string[] = ['*=10000/1']) {
  const beginning = {
    clock: { now: () => Date.UTC(2026, 10, 20, 12), monotonic: () => 0 },
    random: seeded(1),
    apiKey: KEY,
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits,
    seedFile: { organizations: [organization, other], guests, where: () => 'world.ts' },
  };
  const emulator = createEmulator(beginning);
  for (const person of people)
    emulator.seed.contact({ channels: { ch_news: 'opt_in' }, ...person });
  emulator.seed.template({ id: 'tpl_a', name: 'Welcome', subject: 'Hi {{who}}', status: 'draft' });
  return emulator;
}

/** That world behind a socket; answers its address. */
export async function serveWorld(limits?: string[]): Promise<string> {
  const { url, close } = await serve(createWorld(limits), 0);
  onTestFinished(close);
  return url;
}
