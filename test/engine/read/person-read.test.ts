/** A run about one person: what it reads, decides and leaves alone. */
import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const single = (key: string) => ({ mode: { single: key }, only: 'contacts' as const });

function stageOf(options: StageOptions = {}): Stage {
  const stage = openStage(options);
  stage.people.push(
    { id: '1', email: ann, ch_news: 'yes' },
    { id: '2', email: bob, ch_news: 'yes', ch_product: 'no' },
  );
  return stage;
}

/** The writes since the last look, as "opt_in ch_news ann@example.com". */
const sent = (stage: Stage): string[] =>
  stage.writes().map((write) => `${write.subscription} ${write.channelId} ${write.email}`);

/** The reads since the last look: routes of the platform. */
function asked(stage: Stage): () => unknown[] {
  let before = stage.emulator.world.requests().length;
  return () => {
    const fresh = stage.emulator.world.requests().slice(before);
    before += fresh.length;
    return fresh.filter(({ method }) => method === 'GET').map(({ route }) => route);
  };
}

describe('a person who is not on the platform', () => {
  test('is created on the proof of one exact search; nobody else is changed', async () => {
    const stage = stageOf();
    const reads = asked(stage);
    const summary = await stage.sync(single(ann));
    expect(summary).toMatchObject({
      status: 'done',
      mode: 'single',
      contacts: { desired: 1, observed: 0, changes: { create: 1 }, applied: { create: 1 } },
      templates: { desired: 0, observed: 0 },
    });
    expect(sent(stage)).toEqual([`opt_in ch_news ${ann}`]);
    expect(reads()).toEqual(['contacts.list']);
    expect(stage.snapshot.recorded.get('contact', bob)).toBeUndefined();
    expect((await stage.sync(single(ann))).contacts.applied).toMatchObject({ create: 0 });
    expect(sent(stage)).toEqual([]);
  });

  test('is not created where the search fails', async () => {
    const stage = stageOf({ platform: { faults: ['500@contacts.list'] } });
    expect((await stage.sync(single(ann))).status).toBe('failed');
    expect(sent(stage)).toEqual([]);
  });

  test('is not created where the search finds an unsubscribed contact in other spelling', async () => {
    const stage = stageOf();
    stage.emulator.seed.contact({ email: ann.toUpperCase(), status: 'unsubscribed' });
    const summary = await stage.sync(single(ann));
    expect(summary.contacts).toMatchObject({ observed: 1, conflicts: 1, applied: { opt_in: 0 } });
    expect(sent(stage)).toEqual([]);
  });

  test('is still found by the recorded id when the search does not show the contact', async () => {
    const stage = stageOf({
      wire: (send) => async (request, signal) => {
        const answer = await send(request, signal);
        if (!request.path.includes('search=')) return answer;
        return { ...answer, body: JSON.stringify({ contacts: [], total: 0 }) };
      },
    });
    await stage.sync();
    stage.emulator.dashboard.unsubscribe(ann);
    stage.writes();
    const { contacts } = await stage.sync(single(ann));
    expect(contacts).toMatchObject({ observed: 1, conflicts: 1 });
  });
});

test('a person who unsubscribed since the last run is noticed, and stays out', async () => {
  const stage = stageOf();
  await stage.sync();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  stage.writes();
  const summary = await stage.sync(single(ann));
  expect(summary).toMatchObject({ status: 'done', contacts: { conflicts: 1 } });
  expect(summary.problems).toMatchObject([{ class: 'conflict', key: ann, isNew: true }]);
  expect(sent(stage)).toEqual([]);
  const { body = '' } = stage.snapshot.recorded.get('contact', ann) ?? {};
  expect(JSON.parse(body).channels.ch_news).toMatchObject({ is: 'opt_out', by: 'platform' });
});

describe('an address that changed in the CRM', () => {
  const moved = { id: '1', email: 'new@example.com', ch_news: 'yes' };

  test('leaves the former address alone when it is another record now', async () => {
    const stage = stageOf();
    await stage.sync();
    stage.people[0] = moved;
    stage.people.push({ id: '3', email: ann, ch_news: 'no' });
    stage.writes();
    expect((await stage.sync(single(moved.email))).contacts.applied).toMatchObject({ create: 1 });
    expect(sent(stage)).toEqual([`opt_in ch_news ${moved.email}`]);
  });

  test('keeps an id learned by a run about one person', async () => {
    const stage = stageOf();
    await stage.sync(single(ann));
    stage.emulator.dashboard.unsubscribe(ann);
    stage.people[0] = moved;
    stage.writes();
    await stage.sync({ mode: 'fast' });
    expect(sent(stage)).not.toContain(`opt_in ch_news ${moved.email}`);
  });
});

describe('a run about one person does not change', () => {
  test('a person who is missing in the CRM, or vanished from it', async () => {
    const stage = stageOf();
    await stage.sync();
    stage.emulator.seed.contact({ email: 'foreign@example.com', channels: { ch_news: 'opt_in' } });
    stage.people.shift();
    stage.writes();
    for (const key of [ann, 'foreign@example.com', 'nobody@example.com']) {
      const summary = await stage.sync(single(key));
      expect(summary).toMatchObject({ status: 'done', contacts: { desired: 0, changes: {} } });
    }
    expect(sent(stage)).toEqual([]);
    expect(stage.snapshot.recorded.get('contact', 'foreign@example.com')).toBeUndefined();
  });

  test('the problems and the counts of others', async () => {
    const stage = stageOf();
    stage.people.push({ id: '3', email: 'odd@example.com', ch_news: 'maybe' });
    expect((await stage.sync()).contacts).toMatchObject({ invalid: 1 });
    expect(await stage.sync(single(ann))).toMatchObject({
      status: 'done',
      problems: [],
      known: 0,
      contacts: { invalid: 0, rejected: 0 },
    });
    expect(await stage.sync()).toMatchObject({ status: 'done', problems: [{ isNew: false }] });
  });

  test('changes of others with an unknown outcome', async () => {
    const bobs: string[] = [];
    let isSilent = true;
    const stage = stageOf({
      wire: (send) => async (request, signal) => {
        const isBobs = `${request.path}${request.body}`.includes('bob');
        if (isBobs) bobs.push(request.method);
        // His creation is not answered, and he cannot be looked for afterwards.
        if (isBobs && isSilent && bobs.includes('POST'))
          throw new Unavailable('silent', { acted: 'maybe' });
        return send(request, signal);
      },
    });
    expect((await stage.sync(single(bob))).status).toBe('failed');
    expect(stage.snapshot.journal.open('contact')).toHaveLength(1);
    bobs.length = 0;
    isSilent = false;
    expect(await stage.sync(single(ann))).toMatchObject({ status: 'done', reasons: [] });
    expect(bobs).toEqual([]);
    expect(stage.snapshot.journal.open('contact')).toHaveLength(1);
    expect((await stage.sync(single(bob))).contacts.applied).toMatchObject({ create: 1 });
    expect(stage.snapshot.journal.open('contact')).toEqual([]);
  });
});

test('an uncertified reading of the CRM allows opt-outs only', async () => {
  const stage = stageOf();
  Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
  stage.emulator.seed.contact({ email: bob, channels: { ch_product: 'opt_in' } });
  expect((await stage.sync(single(ann))).status).toBe('failed');
  expect((await stage.sync(single(bob))).status).toBe('failed');
  expect(sent(stage)).toEqual([expect.stringContaining('opt_out ch_product')]);
});
