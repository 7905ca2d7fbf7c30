/** A run about everybody drops what it read of people that another run has updated meanwhile. */
import { describe, expect, test } from 'vitest';
import type { Request } from '../../../src/domain/exchange.ts';
import {
  type Stage,
  alone,
  ann,
  dammed,
  listing,
  record,
  sent,
  stageOf,
  wish,
} from '../../support/engine/engine-stage.ts';

const aboutBob = ({ method, body }: Request): boolean =>
  method === 'POST' && (body ?? '').includes('bob@');

const classes = (stage: Stage): string[] =>
  stage.snapshot.problems.get({ kind: 'contact', key: ann, class: 'invalid', part: '' })
    ? ['invalid']
    : [];

describe('problems, during a run about everybody', () => {
  test('stay known when a run about one person found them', async () => {
    const { wire, hold } = dammed(listing);
    const stage = stageOf({ wire });
    await stage.sync();
    const { all, open } = await hold(stage);
    wish(stage, '1', 'perhaps');
    // Its own lookup is a listing too, and must pass.
    const one = stage.one('1');
    open();
    await Promise.all([all, stage.clock.run(one)]);
    expect(classes(stage)).toEqual(['invalid']);
    expect((await stage.sync()).problems).toEqual([
      expect.objectContaining({ class: 'invalid', isNew: false }),
    ]);
  });

  test('stay closed when a run about one person closed them', async () => {
    const { wire, hold } = dammed(aboutBob);
    const stage = stageOf({ wire });
    wish(stage, '1', 'perhaps');
    const { all, open } = await hold(stage);
    wish(stage, '1', 'yes');
    await alone(stage, '1');
    open();
    await all;
    expect(classes(stage)).toEqual([]);
  });
});

test('a change that a run about one person holds stays held', async () => {
  const { wire, hold } = dammed(listing);
  const guards = { opt_in: { percent: 0, floor: 0 } };
  const generous = { percent: 100, floor: 100 };
  const stage = stageOf({ wire, guards });
  await stage.sync();
  const { all, open } = await hold(stage);
  stage.people.push(record('3', 'cat@example.com'));
  const one = stage.one('3');
  open();
  expect(await stage.clock.run(one)).toMatchObject({ status: 'held' });
  await all;
  guards.opt_in = generous;
  expect(await stage.sync()).toMatchObject({ status: 'held', contacts: { held: { opt_in: 1 } } });
});

test('a superseded decision takes its entries for the do-not-contact list with it', () => {
  const { snapshot, close } = stageOf();
  const { listNews, staging } = snapshot;
  const bob = { key: 'bob@example.com', ids: ['2'], adds: [], ends: [] };
  listNews.add({ key: ann, ids: ['1'], adds: [], ends: [{ seq: 1, why: 'seen again' }] });
  listNews.add(bob);
  staging.undecide('contact', [ann]);
  expect(listNews.next(0, 9).map(({ remark }) => remark)).toEqual([bob]);
  close();
});

test('a person erased during a run is not remembered by what the run had read', async () => {
  const { wire, hold } = dammed(listing);
  const stage = stageOf({ wire });
  stage.people.push(record('3', ann));
  const { all, open } = await hold(stage);
  const erasure = { part: '*', cause: 'erasure', contact: null, after: null, by: 0 } as const;
  stage.ledger.write([{ key: ann, ids: ['1', '3'], adds: [erasure], ends: [] }], 0);
  const one = stage.one('1');
  // Until the run about one person has taken the person.
  await new Promise((resolve) => setImmediate(resolve));
  open();
  await Promise.all([all, stage.clock.run(one)]);
  expect(stage.snapshot.duplicates.of('contact', ann)).toEqual([]);
});

test('a quarantine that began during a run continues after it', async () => {
  const stage = stageOf({ heard: async () => begin() });
  const begin = (): void => {
    const since = stage.clock.now();
    const quarantine = { since, until: since + 3_600_000, delayMs: 3_600_000 };
    stage.snapshot.meta.set('quarantine', JSON.stringify(quarantine));
  };
  expect(await alone(stage, '1')).toMatchObject({ contacts: { applied: { create: 1 } } });
  expect(stage.snapshot.meta.get('quarantine')).toBeDefined();
});

test('runs that begin in the same moment have different names', async () => {
  const stage = stageOf();
  const id = (await alone(stage, '1')).run;
  const { runs } = stage.snapshot;
  stage.snapshot.transaction(() => {
    for (let own = 0; own < 0x10000; own += 1) {
      const name = `${id.slice(0, -4)}${own.toString(16).padStart(4, '0')}`;
      if (own % 16 > 0 && name !== id) runs.start({ id: name, mode: 'single', at: 0, asked: '' });
    }
  });
  expect(await alone(stage, '2')).toMatchObject({ status: 'done' });
});

test('only runs about everybody drop old runs', async () => {
  const stage = stageOf();
  const { runs } = stage.snapshot;
  runs.start({ id: 'old', mode: 'full', at: 0, asked: '' });
  runs.finish({ id: 'old', status: 'done', plan: '', summary: '{}', at: 1 });
  await alone(stage, '1');
  expect(runs.get('old')).toBeDefined();
  await stage.sync();
  expect(runs.get('old')).toBeUndefined();
});

describe('a run about one CRM record', () => {
  test('reads the record again once no other run has the person', async () => {
    const heard = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let isFirst = true;
    const stage = stageOf({
      heard: async () => {
        if (!isFirst) return;
        isFirst = false;
        asked.resolve();
        await heard.promise;
      },
    });
    const one = stage.one('1');
    await asked.promise;
    wish(stage, '1', 'no');
    await stage.sync();
    sent(stage);
    heard.resolve();
    await stage.clock.run(one);
    expect(sent(stage)).toEqual([]);
  });
});
