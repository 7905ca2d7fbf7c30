/** Runs about one person, beside the run that is about everybody, in one process. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createPersonLocks } from '../../../src/engine/context/person-locks.ts';
import type { Request } from '../../../src/domain/exchange.ts';
import {
  alone,
  ann,
  dammed,
  listing,
  record,
  sent,
  shown,
  stageOf,
  wish,
} from '../../support/engine/engine-stage.ts';

describe('a run about one CRM record', () => {
  test('updates the person with this id and reads no other record', async () => {
    const stage = stageOf();
    expect(await alone(stage, '1')).toMatchObject({
      status: 'done',
      mode: 'single',
      contacts: { desired: 1, applied: { create: 1 } },
    });
    expect(sent(stage)).toEqual([`opt_in ${ann}`]);
    wish(stage, '1', 'no');
    expect(await alone(stage, '1')).toMatchObject({ contacts: { applied: { opt_out: 1 } } });
    expect(sent(stage)).toEqual([`opt_out ${ann}`]);
    expect(await alone(stage, '1')).toMatchObject({ status: 'done' });
    expect(sent(stage)).toEqual([]);
    // Of the one that changed nothing there is nothing to tell.
    expect(stage.snapshot.runs.newest(9)).toHaveLength(2);
  });

  test('asks the platform nothing about an id that the CRM never had', async () => {
    const stage = stageOf();
    expect(await alone(stage, '9')).toMatchObject({ status: 'done', requests: { total: 0 } });
  });

  test('applies the strictest of several records with the same address', async () => {
    const stage = stageOf();
    stage.people.push(record('3', ann, 'no'));
    await stage.sync();
    expect(shown(stage, ann)).toBeUndefined();
    // The other record still opts the person out.
    expect((await alone(stage, '1')).contacts.applied).toMatchObject({ create: 0, opt_in: 0 });
    wish(stage, '3', 'yes');
    await alone(stage, '3');
    expect(shown(stage, ann)).toBe('opt_in');
  });

  test('opts nobody out for a removed record, and applies the other record of the address', async () => {
    const stage = stageOf({ policy: { absent: 'opt_out', deletes: 'owned' } });
    await stage.sync();
    stage.people = stage.people.filter(({ id }) => id !== '1');
    sent(stage);
    expect(await alone(stage, '1')).toMatchObject({ status: 'done' });
    expect(sent(stage)).toEqual([]);
  });

  test('sees a person again who came back after the contact was deleted, once the record exists', async () => {
    const stage = stageOf();
    await stage.sync();
    stage.emulator.dashboard.deleteContact(ann);
    await stage.sync();
    stage.emulator.dashboard.signUp({ email: ann, channels: ['ch_news'] });
    stage.people = stage.people.filter(({ id }) => id !== '1');
    await alone(stage, '1');
    stage.people.push(record('3', ann, 'no'));
    await stage.sync({ mode: 'fast' });
    await stage.sync();
    expect(shown(stage, ann)).toBe('opt_out');
  });

  test('leaves the person as they are if the record cannot be read', async () => {
    const unreadable = new Set<string>();
    const stage = stageOf({ unreadable });
    await stage.sync();
    sent(stage);
    unreadable.add('1');
    const summary = await alone(stage, '1');
    expect(summary).toMatchObject({
      status: 'rejected',
      contacts: { invalid: 1, changes: { opt_out: 0 } },
    });
    expect(summary.problems).toMatchObject([
      { class: 'invalid', reason: 'record 1: cannot be read' },
    ]);
    expect(sent(stage)).toEqual([]);
  });
});

const enrolment = ({ method, body }: Request): boolean =>
  method === 'POST' && (body ?? '').includes(ann);

describe('a run about one person, during a run about everybody', () => {
  test('keeps the other run from sending what it had planned for this person', async () => {
    const { wire, hold } = dammed(listing);
    const stage = stageOf({ wire });
    const { all, open } = await hold(stage);
    // The CRM was read, and the platform is being listed when the CRM takes the consent back.
    wish(stage, '1', 'no');
    expect(await stage.one('1')).toMatchObject({ status: 'done' });
    open();
    expect(await all).toMatchObject({ status: 'done', contacts: { applied: { create: 1 } } });
    expect(sent(stage)).toEqual(['opt_in bob@example.com']);
  });

  test('keeps the other run from writing to the address it had read', async () => {
    const { wire, hold } = dammed(listing);
    const stage = stageOf({ wire });
    const { all, open } = await hold(stage);
    stage.people = stage.people.map((person) =>
      person['id'] === '1' ? record('1', 'new@example.com', 'no') : person,
    );
    expect(await stage.one('1')).toMatchObject({ status: 'done' });
    open();
    expect(await all).toMatchObject({ status: 'done' });
    expect(sent(stage)).toEqual(['opt_in bob@example.com']);
  });

  test('keeps the other run from taking its older listing for an opt-out', async () => {
    const { wire, hold } = dammed(listing);
    const stage = stageOf({ wire });
    wish(stage, '1', 'no');
    await stage.sync();
    const { all, open } = await hold(stage);
    wish(stage, '1', 'yes');
    expect((await stage.one('1')).contacts.applied).toMatchObject({ create: 1 });
    open();
    // It saw nobody on the platform, and nobody who wants in in the CRM.
    expect(await all).toMatchObject({ status: 'done', contacts: { conflicts: 0 } });
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { conflicts: 0, applied: { create: 0, opt_in: 0 } },
    });
    expect(shown(stage, ann)).toBe('opt_in');
  });

  test('leaves what the other run learns about others in the list and the snapshot', async () => {
    const { wire, hold } = dammed(listing);
    const stage = stageOf({ wire });
    await stage.sync();
    wish(stage, '2', 'no');
    const { all, open } = await hold(stage);
    wish(stage, '1', 'no');
    await stage.one('1');
    stage.emulator.dashboard.leave('bob@example.com', 'ch_news');
    open();
    const summary = await all;
    expect(summary).toMatchObject({ status: 'done' });
    expect(stage.ledger.concerning({ key: 'bob@example.com', ids: [] })).toHaveLength(1);
    expect(stage.snapshot.meta.get('memory-reached')).toBe(String(stage.ledger.reached()));
  });

  test('waits for a request that is already in flight', async () => {
    const { wire, hold } = dammed(enrolment);
    const stage = stageOf({ wire });
    const { all, open } = await hold(stage);
    wish(stage, '1', 'no');
    const one = stage.clock.run(stage.one('1'));
    open();
    expect(await all).toMatchObject({ status: 'done' });
    expect((await one).contacts.applied).toMatchObject({ opt_out: 1 });
    expect(sent(stage)).toEqual([`opt_in ${ann}`, 'opt_in bob@example.com', `opt_out ${ann}`]);
    expect(shown(stage, ann)).toBe('opt_out');
  });

  test('waits for another run about the same person', async () => {
    const stage = stageOf();
    stage.people.push(record('3', ann));
    const both = Promise.all([stage.one('1'), stage.one('3')]);
    const [first, second] = await stage.clock.run(both);
    const made = [first, second].map(({ contacts }) => contacts.applied['create']);
    expect(new Set(made)).toEqual(new Set([0, 1]));
    expect(sent(stage)).toEqual([`opt_in ${ann}`]);
  });
});

describe('a lock', () => {
  const person = (key: string, ...ids: string[]) => ({ keys: [key], ids });

  /** Whether it is granted by now. */
  async function isGranted(lock: Promise<unknown>): Promise<boolean> {
    return Promise.race([lock.then(() => true), pause(0, false)]);
  }

  test.each([
    ['by key', person(ann)],
    ['by id', person('new@example.com', '1')],
  ])(
    'waits for a request in flight that is found %s, until that or its run ends',
    async (_, of) => {
      const locks = createPersonLocks();
      for (const ends of ['request', 'run']) {
        locks.begin('all', 'all');
        expect(locks.beginInFlight('all', ann, ['1'])).toBe(true);
        const taken = locks.take(of);
        expect(await isGranted(taken)).toBe(false);
        // Nothing more is sent for the person, by whatever the run knows them.
        expect(locks.beginInFlight('all', of.keys[0] ?? '', [])).toBe(false);
        if (ends === 'request') locks.endInFlight('all', ann);
        else locks.end('all');
        expect(await isGranted(taken)).toBe(true);
        (await taken).release();
        locks.end('all');
      }
    },
  );

  test('excludes another one of the same key or id, and takes all or nothing', async () => {
    const locks = createPersonLocks();
    const first = await locks.take(person(ann, '1'));
    const second = await locks.take(person('bob@example.com', '2'));
    expect(second.extend(person('cid@example.com', '1'))).toBe(false);
    const third = await locks.take(person('cid@example.com', '3'));
    const waiting = [locks.take(person(ann)), locks.take(person('dan@example.com', '1'))];
    for (const one of waiting) expect(await isGranted(one)).toBe(false);
    first.release();
    for (const one of waiting) expect(await isGranted(one)).toBe(true);
    expect(third.extend(person('eve@example.com', '4'))).toBe(true);
  });

  test('that was taken before a run supersedes its person in it, and no other', async () => {
    const locks = createPersonLocks();
    await locks.take(person(ann, '1'));
    locks.begin('all', 'all');
    expect(locks.beginInFlight('all', 'new@example.com', ['1'])).toBe(false);
    expect(locks.beginInFlight('all', 'bob@example.com', ['2'])).toBe(true);
    expect([...locks.superseded('all').keys]).toEqual([ann]);
    expect(locks.count()).toEqual({ begun: 1, ended: 0 });
  });
});
