/** Fast runs over a CRM that tells what changed: they read that, and nobody is forgotten. */
import { describe, expect, test } from 'vitest';
import { approve } from '../../support/engine/change-volume.ts';
import {
  type Stage,
  edit,
  failing,
  fast,
  settled,
  shown,
  ann,
  record,
  sent,
} from '../../support/engine/engine-stage.ts';
import { playsAll } from '../../support/extent.ts';

/** What the CRM was asked since the last call. */
const asked = (stage: Stage): string[] => stage.asked.splice(0);
describe('a fast run', () => {
  test('reads what changed since the last one, and nobody else', async () => {
    const stage = await settled();
    expect(await fast(stage)).toMatchObject({ status: 'done', contacts: { desired: 0 } });
    expect(asked(stage)).toEqual(['since 0']);
    edit(stage, '1', { ch_news: 'no' });
    edit(stage, '3', { email: 'cid@example.com', ch_news: 'yes' });
    expect(await fast(stage)).toMatchObject({
      status: 'done',
      certificate: { source: true },
      contacts: { desired: 2, applied: { create: 1, opt_out: 1 } },
    });
    expect(asked(stage)).toEqual(['since 0']);
    expect(sent(stage)).toEqual([`opt_out ${ann}`, 'opt_in cid@example.com']);
    await fast(stage);
    expect(asked(stage)).toEqual(['since 2']);
  });

  test('reads the other records of the address: the strictest of them counts', async () => {
    const stage = await settled();
    edit(stage, '3', { email: ann, ch_news: 'no' });
    await fast(stage);
    expect(shown(stage, ann)).toBe('opt_out');
    asked(stage);
    edit(stage, '1', { ch_news: 'yes', consent_at: '2026-01-01' });
    expect(await fast(stage)).toMatchObject({ contacts: { applied: { opt_in: 0 } } });
    expect(asked(stage)).toEqual(['since 1', 'one 3']);
    expect(shown(stage, ann)).toBe('opt_out');
  });

  test('reads a record once that was listed twice', async () => {
    const stage = await settled();
    stage.changed.push('1');
    edit(stage, '1', { email: 'anna@example.com' });
    expect(await fast(stage)).toMatchObject({ status: 'done', contacts: { invalid: 0 } });
    expect(shown(stage, 'anna@example.com')).toBe('opt_in');
  });

  test('reads a record that was listed twice once more: the last word may be an older one', async () => {
    const stage = await settled();
    const words = ['no', 'yes'];
    stage.people[0] = {
      ...record('1', ann),
      get ch_news() {
        return words.shift() ?? 'no';
      },
    };
    stage.changed.push('1', '1');
    await fast(stage);
    expect(shown(stage, ann)).toBe('opt_out');
  });

  test('concludes nothing about people it did not read', async () => {
    const stage = await settled({ policy: { absent: 'opt_out', deletes: 'owned' } });
    stage.people.pop();
    edit(stage, '1', { ch_news: 'no' });
    expect(await fast(stage)).toMatchObject({ status: 'done' });
    expect(sent(stage)).toEqual([`opt_out ${ann}`]);
  });

  test('leaves known problems of other people as they are, and closes those that are over', async () => {
    const stage = await settled();
    edit(stage, '1', { consent_at: 'soon' });
    edit(stage, '2', { consent_at: 'soon' });
    expect(await fast(stage)).toMatchObject({ status: 'rejected', contacts: { invalid: 2 } });
    edit(stage, '1', { consent_at: '' });
    expect(await fast(stage)).toMatchObject({ status: 'done', contacts: { invalid: 1 } });
    const counts = stage.snapshot.retryLater.counts();
    expect(counts).toMatchObject([{ kind: 'contact', class: 'invalid', n: 1 }]);
  });

  test('leaves the cursor where it is when it only plans', async () => {
    const stage = await settled();
    edit(stage, '1', { ch_news: 'no' });
    expect(await stage.sync({ mode: 'fast', writes: false })).toMatchObject({
      contacts: { changes: { opt_out: 1 } },
    });
    await fast(stage);
    expect(asked(stage)).toEqual(['since 0', 'since 0']);
    expect(sent(stage)).toEqual([`opt_out ${ann}`]);
  });
});

describe('the cursor', () => {
  test('stays where it was after a fast run that did not end well', async () => {
    const { state, wire } = failing();
    const stage = await settled({ wire });
    edit(stage, '1', { ch_news: 'no' });
    state.how = 'is away';
    expect(await fast(stage)).toMatchObject({ status: 'failed' });
    state.how = 'well';
    expect(await fast(stage)).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_out: 1 } },
    });
    await fast(stage);
    expect(asked(stage).filter((what) => what !== 'one 1')).toEqual([
      'since 0',
      'since 0',
      'since 1',
    ]);
  });

  test('is removed when a run is killed, and when a full one does not end well', async () => {
    const { state, wire } = failing();
    const stage = await settled({ wire });
    edit(stage, '1', { ch_news: 'no' });
    state.how = 'breaks';
    await expect(fast(stage)).rejects.toThrow('a bug');
    state.how = 'is away';
    expect(await fast(stage)).toMatchObject({ status: 'failed' });
    expect(await stage.sync()).toMatchObject({ status: 'failed' });
    state.how = 'well';
    expect(await fast(stage)).toMatchObject({ status: 'done' });
    expect(shown(stage, ann)).toBe('opt_out');
    await fast(stage);
    expect(asked(stage)).toEqual(['since 0', 'all', 'all', 'all', 'since 1']);
  });

  test('is removed by a run about one person that did not end well', async () => {
    const { state, wire } = failing();
    const stage = await settled({ wire });
    await fast(stage);
    stage.people[0] = record('1', ann, 'no');
    state.how = 'is away';
    expect(await stage.sync({ mode: { single: ann } })).toMatchObject({ status: 'failed' });
    state.how = 'well';
    asked(stage);
    expect(await fast(stage)).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_out: 1 } },
    });
    await fast(stage);
    expect(asked(stage)).toEqual(['all', 'since 0']);
  });

  test.each([
    ['cursor-lost', { manner: 'as it is', cursor: '99' }, ['since 99', 'all']],
    ['mapping-changed', { manner: 'otherwise', cursor: '0' }, ['all']],
  ])(
    'is not used after %s: everything is read, and the summary says why',
    async (code, kept, expected) => {
      const stage = await settled();
      stage.snapshot.meta.set('cursor of contacts', JSON.stringify(kept));
      stage.people[0] = record('1', ann, 'no');
      expect(await fast(stage)).toMatchObject({
        status: 'done',
        contacts: { desired: 2 },
        fullBecause: [{ code }],
      });
      expect(asked(stage)).toEqual(expected);
      expect(shown(stage, ann)).toBe('opt_out');
    },
  );

  test('stays while a reading of changes is uncertified: only opt-outs are applied', async () => {
    const stage = await settled();
    edit(stage, '1', { ch_news: 'no' });
    edit(stage, '3', { email: 'cid@example.com', ch_news: 'yes' });
    stage.certificate = { complete: false, reading: 'part', why: 'cut short', fix: 'wait' };
    expect(await fast(stage)).toMatchObject({ status: 'failed' });
    expect(sent(stage)).toEqual([`opt_out ${ann}`]);
    stage.certificate = { complete: true, reading: 'all' };
    expect(await fast(stage)).toMatchObject({ status: 'done' });
    expect(sent(stage)).toEqual(['opt_in cid@example.com']);
    expect(asked(stage)).toEqual(['since 0', 'since 0']);
  });

  test('stays while changes are held, until they are approved', async () => {
    const stage = await settled({ guards: { opt_in: { percent: 0, floor: 0 } } });
    edit(stage, '3', { email: 'cid@example.com', ch_news: 'yes' });
    const { plan, status } = await fast(stage);
    expect(status).toBe('held');
    expect(await fast(stage)).toMatchObject({ status: 'held' });
    approve(stage, plan);
    expect(await fast(stage)).toMatchObject({ status: 'done' });
    await fast(stage);
    expect(sent(stage)).toEqual(['opt_in cid@example.com']);
    expect(asked(stage)).toEqual(['since 0', 'since 0', 'since 0', 'since 1']);
  });

  test.runIf(playsAll)('is not used where very much has changed: everything is read', async () => {
    const stage = await settled();
    for (let at = 0; at <= 10_000; at += 1) {
      edit(stage, `x${at}`, { email: `x${at}@example.com`, ch_news: '' });
    }
    edit(stage, '1', { ch_news: 'no' });
    expect(await fast(stage)).toMatchObject({ status: 'done', contacts: { desired: 10_003 } });
    expect(asked(stage)).toEqual(['since 0', 'all']);
    expect(sent(stage)).toEqual([`opt_out ${ann}`]);
  });
});

describe('a fast run with a pending retry', () => {
  test('reads the person when a refused opt-out is due again', async () => {
    const { state, wire } = failing();
    const stage = await settled({ wire });
    edit(stage, '1', { ch_news: 'no' });
    state.how = 'refuses';
    expect(await fast(stage)).toMatchObject({ status: 'rejected' });
    asked(stage);
    state.how = 'well';
    await stage.clock.advance(86_400_000);
    expect(await fast(stage)).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_out: 1 } },
    });
    expect(asked(stage)).toEqual(['since 1', 'one 1']);
  });

  test('reads the person when `retry` was called', async () => {
    const { state, wire } = failing();
    const stage = await settled({ wire });
    edit(stage, '1', { ch_news: 'yes', ch_product: 'yes' });
    state.how = 'refuses';
    expect(await fast(stage)).toMatchObject({ status: 'rejected' });
    state.how = 'well';
    expect(await fast(stage)).toMatchObject({ contacts: { applied: { opt_in: 0 } } });
    asked(stage);
    stage.snapshot.retryLater.release({ kind: 'contact', key: ann });
    expect(await fast(stage)).toMatchObject({ contacts: { applied: { opt_in: 1 } } });
    expect(asked(stage)).toEqual(['since 1', 'one 1']);
  });
});
