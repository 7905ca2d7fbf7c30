/** An address that changed in the CRM: the new one is made, then the old one is opted out. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import { moved, NEW, OLD, sent } from '../../support/engine/sample-people.ts';
import type { Stage } from '../../support/engine/engine-stage.ts';
import { scratchFolder } from '../../support/waiting.ts';

const whole = [
  `opt_in ${NEW} ch_news`,
  `opt_in ${NEW} ch_product`,
  `opt_out ${OLD} ch_news`,
  `opt_out ${OLD} ch_product`,
];

/** Of a snapshot on disk, as one that an event shares has to be. */
const pathOf = (): string => join(scratchFolder(), 'snapshot.sqlite');

test('one run creates the new contact, then opts the old one out; the next does nothing', async () => {
  const stage = await moved();
  expect((await stage.sync()).status).toBe('done');
  expect(sent(stage)).toEqual(whole);
  for (const mode of ['fast', 'full'] as const) {
    expect((await stage.sync({ mode })).contacts.conflicts).toBe(0);
    expect(sent(stage)).toEqual([]);
  }
});

describe('the old contact is opted out in the run that made the new one', () => {
  test('in a run that reads only changes', async () => {
    const stage = await moved({}, { tellsChanges: true });
    await stage.sync({ mode: 'fast' });
    stage.changed.push('1');
    await stage.sync({ mode: 'fast' });
    expect(sent(stage)).toEqual(whole);
    expect(stage.asked.at(-1)).not.toBe('all');
  });

  test.each([
    ['an event', async (stage: Stage) => stage.clock.run(stage.one('1'))],
    ['one', async (stage: Stage) => stage.sync({ mode: { single: NEW } })],
  ])('%s', async (_what, runs) => {
    const stage = await moved({}, { path: pathOf() });
    await runs(stage);
    expect(sent(stage)).toEqual(whole);
  });

  test('unless a record of the old address was not read', async () => {
    const both = ({ people }: Stage) => {
      for (const id of ['1', '2']) people.push({ id, email: OLD, ch_news: 'yes' });
    };
    for (const tellsChanges of [true, false]) {
      const stage = await moved({}, { tellsChanges, before: both });
      await stage.sync({ mode: 'fast' });
      stage.changed.push('1');
      await stage.sync({ mode: 'fast' });
      expect(sent(stage)).toEqual(whole.slice(0, 2));
    }
  });
});

test('a run stopped in between is completed by the next', async () => {
  const stop = new AbortController();
  const stage = await moved(
    {},
    {
      wire: (send) => async (request, signal) => {
        const answer = await send(request, signal);
        const isNew = request.body?.includes(NEW) === true;
        if (request.method === 'POST' && isNew) stop.abort(new Interrupted('SIGTERM'));
        return answer;
      },
    },
  );
  await stage.sync({ stop: stop.signal });
  expect(sent(stage)).toEqual(whole.slice(0, 1));
  await stage.sync();
  expect(sent(stage).toSorted()).toEqual(whole.slice(1).toSorted());
});

test('another record of the old address keeps the old contact, whatever it wants, broken or not', async () => {
  for (const ch_news of ['', 'maybe', 'yes']) {
    const stage = await moved();
    stage.people.push({ id: '2', email: OLD, ch_news });
    await stage.sync();
    expect(sent(stage)).toEqual(whole.slice(0, 2));
  }
});

describe('an opt-out stated for the new address applies to the old one at once', () => {
  const no = { ch_news: 'no', ch_product: 'no' };

  test.each([
    ['full', {}, async (stage: Stage) => stage.sync()],
    ['fast', {}, async (stage: Stage) => stage.sync({ mode: 'fast' })],
    ['an event', { path: 'on disk' }, async (stage: Stage) => stage.clock.run(stage.one('1'))],
  ])('%s, whatever the guard for deletes says', async (_what, options, runs) => {
    const path = 'path' in options ? { path: pathOf() } : {};
    const guards = { delete: { percent: 0, floor: 0 } };
    const stage = await moved(no, { ...path, guards });
    expect((await runs(stage)).status).toBe('done');
    expect(sent(stage)).toEqual(whole.slice(2));
    expect((await stage.sync()).contacts.conflicts).toBe(0);
    expect(sent(stage)).toEqual([]);
  });
});
