/** What `undo` leaves behind of a consent decision: nobody who said no is opted in by it later. */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const ben = 'ben@example.com';
const later = {
  contacts: { consentAt: 'at' },
  policy: { resubscribe: 'newer' },
};
/** Writes the records of the CRM. One more person keeps it from being empty. */
const crm = (world: Mirrored, ...rows: string[]) =>
  world.csv(['id,email,news,product,at', ...rows, '9,x@example.com,yes,,', ''].join('\n'));
const sync = async (world: Mirrored) => (await world.call('sync', '--json')).json;
const contactOf = (world: Mirrored, who: string) => world.emulator.world.contact(who)?.id ?? '';
const news = (world: Mirrored, who: string) => world.shown(who)?.['ch_news'];
const now = () => new Date().toISOString();
const ledgerOf = async (world: Mirrored, who: string): Promise<{ cause: string }[]> =>
  (await world.call('explain', who, '--json')).json.ledger;

async function undo(world: Mirrored, run: string) {
  const { code, json, said } = await world.call('undo', run, '--yes', '--json');
  expect({ code, said }).toMatchObject({ code: 0 });
  return json;
}

async function isLeftAlone(world: Mirrored, who: string) {
  const { contacts } = await sync(world);
  expect({ shows: news(world, who), changes: contacts.changes }).toMatchObject({
    shows: 'opt_out',
    changes: { opt_in: 0, create: 0 },
  });
}

/** Ann has left, and a wrong export says that she came back. */
async function overridden(missing = 'respect') {
  const policy = { ...later.policy, missing };
  const world = await mirrored({ lines: { ...later, policy } });
  crm(world, `1,${ann},yes,,2020-01-01`);
  await sync(world);
  world.emulator.dashboard.leave(contactOf(world, ann), 'ch_news');
  await sync(world);
  expect(await ledgerOf(world, ann)).toMatchObject([{ cause: 'opt_out' }]);
  crm(world, `1,${ann},yes,,${now()}`);
  const { run } = await sync(world);
  expect([news(world, ann), await ledgerOf(world, ann)]).toEqual(['opt_in', []]);
  return { world, run };
}

test('an opt-out of the person that a wrong time overrode is the person’s again', async () => {
  const { world, run } = await overridden();
  const { run: second } = await undo(world, run);
  expect(news(world, ann)).toBe('opt_out');
  expect(await ledgerOf(world, ann)).toMatchObject([{ cause: 'opt_out' }]);
  // The wrong export is still there, and then it is corrected.
  await isLeftAlone(world, ann);
  crm(world, `1,${ann},yes,,2020-01-01`);
  await isLeftAlone(world, ann);
  // Another word, and the same one again.
  crm(world, `1,${ann},,,`);
  await isLeftAlone(world, ann);
  crm(world, `1,${ann},yes,,2020-01-01`);
  await isLeftAlone(world, ann);
  const groups = (await sync(world)).groups.map(({ cause }: { cause: string }) => cause);
  expect(groups).toEqual(['left-channel']);
  const back = await undo(world, second);
  expect(back.cannot).toMatchObject([{ rule: 'left-or-unknown', count: 1 }]);
  crm(world, `1,${ann},yes,,${now()}`);
  await sync(world);
  expect(news(world, ann)).toBe('opt_in');
});

describe('an opt-out of the person that was overridden counts again', () => {
  test.each<[string, (world: Mirrored) => void]>([
    ['vanished', (world) => world.emulator.dashboard.deleteContact(contactOf(world, ann))],
    [
      'was renamed',
      (world) =>
        world.emulator.dashboard.editContact(contactOf(world, ann), { email: 'ann@example.net' }),
    ],
  ])('although the contact %s since', async (_what, act) => {
    const { world, run } = await overridden('recreate');
    act(world);
    const { cannot } = await undo(world, run);
    expect(cannot).toMatchObject([{ rule: 'contact-gone', count: 1 }]);
    expect((await ledgerOf(world, ann)).map(({ cause }) => cause)).toContain('opt_out');
    crm(world, `1,${ann},yes,,2020-01-01`);
    await sync(world);
    expect(world.shown(ann)).toBeUndefined();
  });
});

test('an opt-out that the CRM had stated stays with the record that stated it', async () => {
  const world = await mirrored({ lines: later });
  const stays = `5,${ben},yes,,2019-01-01`;
  crm(world, stays, `1,${ann},yes,,2019-01-01`);
  await sync(world);
  crm(world, stays, `1,${ann},no,,2019-01-01`);
  await sync(world);
  crm(world, stays, `2,${ann},yes,,${now()}`);
  const { run } = await sync(world);
  expect(news(world, ann)).toBe('opt_in');
  await undo(world, run);
  crm(world, stays, `2,${ann},yes,,2019-01-01`);
  await isLeftAlone(world, ann);
  crm(world, stays, `2,${ann},,,`);
  await isLeftAlone(world, ann);
  crm(world, stays, `2,${ann},yes,,`);
  await isLeftAlone(world, ann);
  crm(world, stays, `1,${ann},yes,,2019-01-01`);
  await sync(world);
  expect(news(world, ann)).toBe('opt_in');
});

test('an opt-out that `resolve --in` overrode is as it was before', async () => {
  const world = await mirrored();
  const rows = (...some: string[]) =>
    world.csv(['id,email,news,product', '9,x@example.com,yes,', ...some, ''].join('\n'));
  for (const some of [[`1,${ann},yes,`], [`1,${ann},yes,`, `2,${ann},no,`], [`1,${ann},yes,`]]) {
    rows(...some);
    await sync(world);
  }
  expect(news(world, ann)).toBe('opt_out');
  const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'];
  expect((await world.call('resolve', ann, '--channel', 'ch_news', '--in', ...said)).code).toBe(0);
  const { run } = await sync(world);
  expect(news(world, ann)).toBe('opt_in');
  await undo(world, run);
  for (const word of ['', 'yes']) {
    rows(`1,${ann},${word},`);
    await isLeftAlone(world, ann);
  }
});

/** Ann leaves the channel, so much later that it is no difference of clocks. */
async function leaveLater(world: Mirrored): Promise<void> {
  await setTimeout(2_100);
  world.emulator.dashboard.leave(contactOf(world, ann), 'ch_news');
}

describe('an undo that is undone', () => {
  /** Ann is opted in, and that is undone. */
  async function undoneIn() {
    const world = await mirrored();
    crm(world, `1,${ann},yes,,`);
    await sync(world);
    const { run } = await undo(world, 'last');
    return { world, run };
  }

  test('opts nobody in who has left again while our opt-out stood', async () => {
    const { world, run } = await undoneIn();
    await leaveLater(world);
    const { cannot } = await undo(world, run);
    expect(cannot).toMatchObject([{ rule: 'changed-since', count: 1 }]);
    expect([news(world, ann), news(world, 'x@example.com')]).toEqual(['opt_out', 'opt_in']);
  });

  test('is not stopped by what we have changed in another channel since', async () => {
    const world = await mirrored({ platform: { quirks: ['enrol-touches'] } });
    crm(world, `1,${ann},yes,,`);
    await sync(world);
    const { run } = await undo(world, 'last');
    crm(world, `1,${ann},yes,yes,`);
    await sync(world);
    const { cannot } = await undo(world, run);
    expect([cannot, news(world, ann)]).toEqual([[], 'opt_in']);
  });
});

test('what was undone in a channel is not done in the channel that replaces it', async () => {
  const channel = (id: string, replaces?: string) => ({
    contacts: { channels: [{ id, subscription: 'news', ...(replaces && { replaces }) }] },
  });
  const world = await mirrored({ lines: channel('ch_news') });
  crm(world, `1,${ann},yes,,`);
  await sync(world);
  await undo(world, 'last');
  world.config(channel('ch_product', 'ch_news'));
  for (const _ of [1, 2]) {
    expect((await sync(world)).groups).toMatchObject([{ cause: 'undone' }]);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  }
  for (const word of ['', 'yes']) {
    crm(world, `1,${ann},${word},,`);
    await sync(world);
  }
  expect(world.shown(ann)?.['ch_product']).toBe('opt_in');
});

test('a person with an opt-out that a guard holds is not opted in', async () => {
  const guards = { optOuts: { percent: 10, floor: 3 } };
  const world = await mirrored({ lines: { guards } });
  const people = Array.from({ length: 20 }, (_, at) => `p${at}@example.com`);
  const [first = ''] = people;
  const say = (wantsProduct: string, most = 0) =>
    world.people(
      people.map((email, at) => ({
        email,
        news: at < most ? 'no' : 'yes',
        product: email === first ? wantsProduct : '',
      })),
    );
  say('yes');
  await sync(world);
  say('no');
  const { run } = await sync(world);
  expect(world.shown(first)?.['ch_product']).toBe('opt_out');
  say('yes', 10);
  for (const isHeld of [false, true]) {
    if (isHeld) expect((await sync(world)).contacts).toMatchObject({ held: { opt_out: 10 } });
    const { cannot } = await undo(world, run);
    expect(cannot).toMatchObject([{ rule: 'opt-out-held', count: 1 }]);
    expect(world.shown(first)?.['ch_product']).toBe('opt_out');
  }
});
