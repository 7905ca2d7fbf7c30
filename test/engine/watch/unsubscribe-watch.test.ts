/** Who leaves all mail between two full runs. */
import { describe, expect, test } from 'vitest';
import { Rejected } from '../../../src/domain/errors.ts';
import {
  at,
  NEWS,
  PRODUCT,
  watched,
  type Watched,
  type WorldOptions,
} from '../../support/engine/engine-world.ts';

const counters = 'list 1×1';
const both = [counters, 'list 1×100 unsubscribed', 'list 1×100 blocked'];

const wantsNews = (...names: string[]) => names.map((name) => ({ email: at(name), news: 'yes' }));
const wantsAll = (name: string) => ({ email: at(name), news: 'yes', product: 'yes' });

/** People of the mirror, synchronized, and counted once. */
async function standing(names: string[], options: WorldOptions = {}) {
  const world = await watched(options);
  world.people(wantsNews(...names));
  await world.sync();
  await world.look();
  world.writes();
  return world;
}

/** Nobody is opted in, whatever runs. */
async function staysOut(world: Watched, ...modes: ('fast' | 'full')[]): Promise<void> {
  for (const mode of modes) {
    await world.sync({ mode });
    expect(world.writes().map(({ body }) => body.subscription)).not.toContain('opt_in');
  }
}

describe('a look for unsubscribes', () => {
  test('keeps the counts, in the first and while nobody unsubscribes', async () => {
    const world = await watched();
    world.emulator.seed.contact({ email: at('gone'), status: 'unsubscribed' });
    world.people(wantsNews('ann', 'bob'));
    await world.sync();
    for (let nth = 0; nth < 3; nth += 1) {
      expect(await world.look()).toEqual({ is: 'still', pages: 0, learnt: 0, asked: [counters] });
    }
    world.emulator.dashboard.signUp({ email: at('new'), channels: [NEWS] });
    world.emulator.dashboard.resubscribe(at('gone'));
    expect((await world.look()).asked).toEqual([counters]);
    // From now on that is what is compared.
    world.emulator.dashboard.unsubscribe(at('bob'));
    expect((await world.look()).asked).toEqual(both);
  });

  test.each([
    ['unsubscribes', 'unsubscribe', 'unsubscribed', both],
    ['is blocked', 'block', 'blocked', [both[0], both[2], both[1]]],
  ] as const)('notices at once that somebody %s', async (_, leaves, cause, asked) => {
    const world = await standing(['ann', 'bob']);
    world.emulator.dashboard[leaves](at('ann'));
    expect(await world.look()).toEqual({ is: 'listed', pages: 2, learnt: 1, asked });
    expect(world.against('ann')).toEqual([`${cause} *`]);
    expect([world.hasLeft('ann'), world.hasLeft('bob')]).toEqual([true, false]);
    expect(world.against('bob')).toEqual([]);
    expect(await world.look()).toMatchObject({ is: 'still', asked: [counters] });
    // Nothing was sent, now or by the next run, though the CRM wants the person in elsewhere.
    world.people([wantsAll('ann'), ...wantsNews('bob')]);
    const summary = await world.sync({ mode: 'fast' });
    expect(summary.contacts).toMatchObject({ conflicts: 1 });
    expect(world.writes()).toEqual([]);
    await staysOut(world, 'full');
  });

  test.each([true, false])(
    'keeps a person out whose contact is deleted later: known %s',
    async (known) => {
      const world = await standing(['ann'], { policy: { missing: 'recreate' } });
      world.emulator.dashboard.unsubscribe(at('ann'));
      if (known) await world.look();
      world.emulator.dashboard.deleteContact(at('ann'));
      // Only the do-not-contact list still knows the person.
      await world.syncAnew();
      expect(world.shown(at('ann')) !== undefined).toBe(!known);
    },
  );

  test('lets a person in again who has resubscribed, as after a full run', async () => {
    const world = await standing(['ann']);
    world.emulator.dashboard.unsubscribe(at('ann'));
    await world.look();
    world.emulator.dashboard.resubscribe(at('ann'));
    await world.look();
    world.people([wantsAll('ann')]);
    await world.sync();
    expect(world.against('ann')).toEqual([]);
    expect(world.shown(at('ann'))).toEqual({ [NEWS]: 'opt_in', [PRODUCT]: 'opt_in' });
  });

  test('keeps nothing about foreign people', async () => {
    const world = await standing(['ann']);
    world.emulator.seed.contact({ email: at('foreign'), status: 'blocked' });
    expect(await world.look()).toMatchObject({ is: 'listed', learnt: 0 });
    expect(world.snapshot.recorded.count('contact')).toBe(1);
    expect(world.against('foreign')).toEqual([]);
  });

  test('leaves a person foreign who is known by an opt-out of a record out of scope', async () => {
    const world = await standing(['ann']);
    const row = world.snapshot.recorded.get('contact', at('ann'));
    world.snapshot.recorded.put({ ...row!, ownership: 'noted' });
    world.emulator.dashboard.unsubscribe(at('ann'));
    await world.look();
    expect(world.hasLeft('ann')).toBe(true);
    expect(world.snapshot.recorded.get('contact', at('ann'))?.ownership).toBe('noted');
  });

  test('tells only the list about another contact than the one that vanished', async () => {
    const world = await standing(['ann']);
    world.emulator.dashboard.deleteContact(at('ann'));
    await world.sync();
    const before = world.snapshot.recorded.get('contact', at('ann'));
    world.emulator.seed.contact({ email: at('ann'), status: 'unsubscribed' });
    expect(await world.look()).toMatchObject({ learnt: 1 });
    expect(world.snapshot.recorded.get('contact', at('ann'))).toEqual(before);
    expect(world.against('ann')).toContain('unsubscribed *');
  });

  test('records an unsubscribe of a renamed contact under the recorded address', async () => {
    const world = await standing(['ann']);
    world.emulator.dashboard.editContact(at('ann'), { email: at('anna') });
    world.emulator.dashboard.unsubscribe(at('anna'));
    expect(await world.look()).toMatchObject({ learnt: 1 });
    expect(world.against('ann')).toEqual(['unsubscribed *']);
    expect(world.snapshot.recorded.get('contact', at('anna'))).toBeUndefined();
  });
});

describe('a listing longer than one look', () => {
  /** So many are gone already, the newest first; then somebody among them leaves. */
  async function crowd(gone: number, options: WorldOptions): Promise<Watched> {
    const world = await watched(options);
    world.people(wantsNews('old'));
    await world.sync();
    for (let nth = 0; nth < gone; nth += 1) {
      world.clock.pass(1);
      world.emulator.seed.contact({ email: at(`gone${nth}`), status: 'unsubscribed' });
    }
    await world.look();
    world.emulator.dashboard.unsubscribe(at('old'));
    return world;
  }

  test('is continued by the next looks, and updates the counts at its end', async () => {
    const world = await crowd(250, { limits: ['contacts.list=8/60', '*=100000/1'] });
    const first = await world.look();
    expect(first).toMatchObject({ is: 'listing', pages: 2, learnt: 0 });
    expect(world.hasLeft('old')).toBe(false);
    // A quarter of the window is spent.
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 0, asked: [counters] });
    world.clock.pass(61_000);
    const second = await world.look();
    const pages = ['list 2×100 unsubscribed', 'list 3×100 unsubscribed'];
    expect(second).toEqual({ is: 'listing', pages: 2, learnt: 1, asked: [counters, ...pages] });
    expect(world.hasLeft('old')).toBe(true);
    world.clock.pass(61_000);
    expect(await world.look()).toMatchObject({ is: 'listed', pages: 1 });
    world.clock.pass(61_000);
    expect((await world.look()).asked).toEqual([counters]);
  });

  test('misses somebody on a page listed before, and the next listing finds them', async () => {
    const world = await crowd(150, { limits: ['contacts.list=4/60', '*=100000/1'] });
    world.people(wantsNews('old', 'young'));
    await world.sync();
    world.clock.pass(61_000);
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 1 });
    world.emulator.dashboard.unsubscribe(at('young'));
    const seen: string[] = [];
    for (let nth = 0; nth < 12 && !seen.includes('still'); nth += 1) {
      world.clock.pass(61_000);
      seen.push((await world.look()).is);
    }
    expect([world.hasLeft('old'), world.hasLeft('young')]).toEqual([true, true]);
    expect(seen.at(-1)).toBe('still');
  });

  test('spends a quarter of a window, in however many looks', async () => {
    const world = await standing(['ann', 'bob'], { limits: ['contacts.list=12/60', '*=100000/1'] });
    world.emulator.dashboard.unsubscribe(at('ann'));
    expect(await world.look()).toMatchObject({ is: 'listed', pages: 2 });
    world.emulator.dashboard.unsubscribe(at('bob'));
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 1 });
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 0 });
  });

  test('reads ten pages a minute without a known limit', async () => {
    const world = await crowd(1_150, { platform: { quirks: ['headers=none'] } });
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 10 });
    expect(await world.look()).toMatchObject({ is: 'listing', pages: 0 });
    world.clock.pass(61_000);
    expect(await world.look()).toMatchObject({ is: 'listed', pages: 4, learnt: 1 });
  });

  test('keeps the listed pages when the next one fails', async () => {
    const world = await crowd(120, {});
    const fault = world.server.fail(({ path }) => path.includes('page=2'), {
      is: 'answer',
      status: 403,
    });
    await expect(world.look()).rejects.toThrow(Rejected);
    fault.undo();
    const { asked } = await world.look();
    expect(asked.slice(1, 3)).toEqual(['list 1×100 unsubscribed', 'list 2×100 unsubscribed']);
    expect(world.hasLeft('old')).toBe(true);
  });
});
