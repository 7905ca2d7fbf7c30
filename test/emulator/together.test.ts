import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFile } from '../../src/emulator/store/sqlite-file.ts';
import { twoOrganizations, KEY, stage } from '../support/emulator/emulator-stage.ts';
import { scratchFolder } from '../support/waiting.ts';

const LIST = 'GET /api/contacts/list';
const NEWS = 'POST /api/contacts/channel/ch_news';

const dataFile = (): string => join(scratchFolder(), 'world.sqlite');

test('a search quirk applies to every organization of a seed file, and after a restore', () => {
  const path = dataFile();
  for (const start of ['seeded', 'restored']) {
    const storage = openFile(path);
    const platform = twoOrganizations({ storage, quirks: ['search-wildcards'] });
    for (const key of [KEY, 'k_b']) {
      const { total } = platform.askAs(key, `${LIST}?search=_nn@`).json;
      expect([start, total]).toEqual([start, 1]);
    }
    platform.close();
  }
});

test('limits are counted by the algorithm, for each organization', () => {
  const platform = twoOrganizations({ algorithm: 'gcra', limits: ['*=2/10'] });
  const statuses = (key: string, times: number) =>
    Array.from({ length: times }, () => platform.askAs(key, LIST).status);
  expect(statuses(KEY, 3)).toEqual([200, 200, 429]);
  platform.pass(5000);
  expect(statuses(KEY, 2)).toEqual([200, 429]);
  expect(statuses('k_b', 3)).toEqual([200, 200, 429]);
});

test('a stuck counter belongs to one organization, and a reset frees it', () => {
  const platform = twoOrganizations({ quirks: ['retry-after-stuck'], limits: ['*=2/1'] });
  const statuses = (key: string) => [1, 2, 3].map(() => platform.askAs(key, LIST).status);
  expect(statuses(KEY)).toEqual([200, 200, 429]);
  platform.pass(3_600_000);
  expect(statuses(KEY)).toEqual([429, 429, 429]);
  expect(statuses('k_b')).toEqual([200, 200, 429]);
  platform.reset();
  expect(statuses(KEY)).toEqual([200, 200, 429]);
});

test('the same requests meet the same faults and numbers after a reset', () => {
  const platform = stage({ faults: ['500=0.3', 'slow=0.3'], quirks: ['event-ids'] });
  const story = () =>
    Array.from({ length: 40 }, (_, index) =>
      platform.receive({
        method: 'POST',
        path: '/api/contacts/channel/ch_news',
        headers: { 'x-api-key': KEY },
        body: JSON.stringify({ email: `${index}@example.org` }),
      }),
    );
  const first = story();
  platform.reset();
  expect(story()).toEqual(first);
});

test('faults do not affect the console and the pages', () => {
  const platform = stage({ faults: ['reset-before'] });
  for (const path of ['/_emulator/state', '/openapi.json', '/docs']) {
    const delivery = platform.receive({ method: 'GET', path, headers: {} });
    expect(delivery).toMatchObject({ is: 'whole', answer: { status: 200 } });
  }
});

test('a reset keeps the default of a channel, and variables that a quirk derived', () => {
  const storage = () => openFile(path);
  const path = dataFile();
  const quirks = ['all-channels', 'content-rederives-variables'];
  const channels = [
    { id: 'ch_news', name: 'Newsletter' },
    { id: 'ch_in', name: 'In', subscription: 'opt_in' as const },
  ];
  const before = stage({ storage: storage(), quirks, channels });
  before.ask('POST /_emulator/create-channel', { id: 'ch_2', name: '2', subscription: 'opt_in' });
  before.ask(NEWS, { email: 'ann@example.org', subscription: 'opt_out' });
  before.ask('POST /api/template/v1/create', { name: 'One', content: [{ text: '{{who}}' }] });
  before.close();

  const after = stage({ storage: storage(), quirks, channels: [] });
  expect(after.ask(LIST).json.contacts[0].channels).toMatchObject([
    { id: 'ch_news', subscription: 'opt_out' },
    { id: 'ch_in', subscription: 'opt_in' },
    { id: 'ch_2', subscription: 'opt_in' },
  ]);
  expect(after.ask('GET /api/template/v1/list').json.templates[0].variables).toMatchObject([
    { name: 'who' },
  ]);
  after.close();
});

test('unreadable options are refused before anything is stored', () => {
  const path = dataFile();
  for (const wrong of [
    { limits: ['x'] },
    { quirks: ['x'] },
    { faults: ['x'] },
    { algorithm: 'x' },
  ]) {
    const storage = openFile(path);
    expect(() => stage({ storage, ...wrong })).toThrow('"x"');
    expect(storage.load()).toEqual([]);
    storage.close();
  }
});
