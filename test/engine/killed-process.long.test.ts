/**
 * The command line as a process, killed at moments nobody chose, while both sides change:
 * nothing twice, nothing lost, nobody brought back. A failure names its seed; KILL_SEED repeats it.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { playsAll } from '../support/extent.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { each } from '../../src/engine/context/work-in-parts.ts';
import {
  createWorld,
  type Ended,
  launch,
  statesIn,
  type World,
} from '../support/engine/engine-world.ts';
import Database from 'better-sqlite3';

const worlds = playsAll ? 3 : 1;
const killsEach = 20;
/** Two processes at a time: what most machines have cores for. */
const atOnce = 2;
const channels = ['ch_news', 'ch_product'] as const;
const wishes = ['yes', 'no', ''] as const;
const subscribed = { yes: 'opt_in', no: 'opt_out', '': undefined } as const;

type Wish = (typeof wishes)[number];

/**
 * When to kill: so much time after its start, or after the snapshot was made; or with the n-th
 * request of any route.
 */
type Moment =
  | { at: 'start' | 'snapshot'; afterMs: number }
  | { at: 'arrived' | 'acted' | 'answered'; nth: number };

interface Leaving {
  email: string;
  /** Undefined: all mail. */
  channel: string | undefined;
  /** How many requests the platform had answered by then. */
  after: number;
}

/** What one process was to bring about: the requests from `from` on are its own. */
interface Period {
  from: number;
  crm: Map<string, Record<string, Wish>>;
}

interface Stage {
  world: World;
  file: string;
  journal: string;
  random(): number;
  crm: Map<string, Record<string, Wish>>;
  letters: Map<string, string>;
  left: Leaving[];
  periods: Period[];
  kills: Moment[];
}

test(`a process killed at ${worlds * killsEach} moments loses and repeats nothing`, async () => {
  const seed = Number(process.env['KILL_SEED'] ?? Math.floor(Math.random() * 1e9));
  const stages: Stage[] = [];
  for (let at = 0; at < worlds; at += 1) stages.push(await arranged(seed + at));
  await each(stages.entries(), atOnce, async ([at, stage]) => {
    try {
      while (stage.kills.length < killsEach) await killOnce(stage);
      await finish(stage);
    } catch (error) {
      const kills = JSON.stringify(stage.kills);
      throw new Error(`KILL_SEED=${seed}, world ${at}, killed at ${kills}`, { cause: error });
    }
  });
  expect(stages.flatMap(({ kills }) => kills)).toHaveLength(worlds * killsEach);
});

async function arranged(seed: number): Promise<Stage> {
  const world = await createWorld();
  world.server.delayMs = 1;
  const stage: Stage = {
    world,
    file: world.config({ timeoutMs: 4_000 }),
    journal: join(world.folder, 'cli/snapshot.sqlite'),
    random: seeded(seed),
    crm: new Map(),
    letters: new Map(),
    left: [],
    periods: [],
    kills: [],
  };
  for (let at = 0; at < 20; at += 1) newcomer(stage);
  for (const email of [...stage.crm.keys()].slice(0, 8)) {
    const shown = { ch_news: pick(stage, ['opt_in', 'opt_out'] as const) };
    world.emulator.seed.contact({ email, channels: shown });
    if (shown.ch_news === 'opt_out') stage.left.push({ email, channel: 'ch_news', after: 0 });
  }
  for (const key of ['a', 'b']) stage.letters.set(key, key);
  write(stage);
  return stage;
}

/** One process, killed at a moment of its own; one that had ended before counts as no kill. */
async function killOnce(stage: Stage): Promise<void> {
  const { server } = stage.world;
  const moment = momentOf(stage);
  const { child, ended } = begin(stage);
  const called = aim(stage, moment, () => void child.kill('SIGKILL'));
  const end = await ended;
  called.off();
  await server.quiet();
  if (end.signal === 'SIGKILL') stage.kills.push(moment);
  else await expectDone(stage, end);
  // The lease of the dead is free at once; before the first of them there was no folder for it.
  if (existsSync(dirname(stage.journal))) takeLease(stage.journal).release();
  change(stage);
}

/** The first process of a world makes the snapshot. */
function momentOf(stage: Stage): Moment {
  const first = stage.periods.length === 0;
  if (first) return { at: 'snapshot', afterMs: Math.floor(stage.random() * 12) };
  const at = pick(stage, ['start', 'arrived', 'acted', 'answered', 'answered'] as const);
  if (at === 'start') return { at, afterMs: Math.floor(stage.random() * 600) };
  return { at, nth: 1 + Math.floor(stage.random() ** 2 * 40) };
}

/** Calls back once, when the moment has come. */
function aim({ world, journal }: Stage, moment: Moment, call: () => void): { off(): void } {
  const timers: NodeJS.Timeout[] = [];
  if ('nth' in moment) {
    let seen = 0;
    world.server.watch[moment.at] = () => {
      seen += 1;
      if (seen === moment.nth) call();
    };
  } else if (moment.at === 'start') timers.push(setTimeout(call, moment.afterMs));
  else {
    const look = setInterval(() => {
      if (!existsSync(journal)) return;
      clearInterval(look);
      timers.push(setTimeout(call, moment.afterMs));
    }, 1);
    timers.push(look);
  }
  return {
    off: () => {
      timers.forEach(clearTimeout);
      world.server.watch = {};
    },
  };
}

function begin(stage: Stage): ReturnType<typeof launch> {
  const from = stage.world.emulator.world.requests().length;
  const crm = [...stage.crm].map(([email, wanted]) => [email, { ...wanted }] as const);
  stage.periods.push({ from, crm: new Map(crm) });
  return launch(['sync', '-c', stage.file, '--json']);
}

/** What happens on both sides while nobody mirrors them. */
function change(stage: Stage): void {
  const { emulator } = stage.world;
  newcomer(stage);
  for (let times = 0; times < 6; times += 1) {
    const email = pick(stage, [...stage.crm.keys()]);
    stage.crm.set(email, { ...stage.crm.get(email), [pick(stage, channels)]: anyWish(stage) });
  }
  const channel = pick(stage, channels);
  const shown = emulator.world.contacts().map(({ email }) => email);
  // People with an opt-out in flight are left alone, because theirs would count as ours.
  const open = changesIn(stage).filter(({ state }) => ['sent', 'unknown'].includes(state));
  const going = new Set(open.filter(({ op }) => op === 'opt_out').map(({ who }) => who));
  const members = shown.filter(
    (email) =>
      stage.world.shown(email)?.[channel] === 'opt_in' && !going.has(`${email} ${channel}`),
  );
  const after = emulator.world.requests().length;
  if (members.length > 0) {
    const email = pick(stage, members);
    const all = stage.random() < 0.3;
    if (all) emulator.dashboard.unsubscribe(email);
    else emulator.dashboard.leave(email, channel);
    stage.left.push({ email, channel: all ? undefined : channel, after });
  }
  const key = pick(stage, ['a', 'b', 'c', 'd', 'e', 'f']);
  stage.letters.set(key, `${key} ${after}`);
  if (stage.random() < 0.1) {
    stage.crm.delete(pick(stage, [...stage.crm.keys()]));
  }
  write(stage);
}

/** The journal, oldest change first; `who`: the person and the channel. */
function changesIn({ journal }: Stage): { who: string; op: string; state: string }[] {
  if (!existsSync(journal)) return [];
  // Not only for reading: what a process was killed in may have to be rolled back.
  const db = new Database(journal);
  try {
    const made = db.prepare("select 1 from sqlite_master where name = 'change'").get();
    return made
      ? db
          .prepare<[], { who: string; op: string; state: string }>(
            `select key || ' ' || part who, op, state from change where kind = 'contact' order by seq`,
          )
          .all()
      : [];
  } finally {
    db.close();
  }
}

/** Opt-outs that are recorded as the person's own: address and channel. */
function notOurs({ journal }: Stage): Set<string> {
  const db = new Database(journal, { readonly: true });
  try {
    const rows = db
      .prepare<[], { who: string }>(
        `select r.key || ' ' || c.key who
         from recorded r, json_each(r.body, '$.channels') c
         where r.kind = 'contact'
           and c.value ->> 'is' = 'opt_out' and c.value ->> 'by' = 'platform'`,
      )
      .all();
    return new Set(rows.map(({ who }) => who));
  } finally {
    db.close();
  }
}

function newcomer(stage: Stage): void {
  const email = `p${String(stage.crm.size + stage.kills.length * 100)}@example.com`;
  stage.crm.set(email, { ch_news: anyWish(stage), ch_product: anyWish(stage) });
}

function anyWish(stage: Stage): Wish {
  return pick(stage, ['yes', 'yes', 'no', '']);
}

function write({ world, crm, letters }: Stage): void {
  world.people(
    [...crm].map(([email, wanted]) => ({
      email,
      news: wanted['ch_news'] ?? '',
      product: wanted['ch_product'] ?? '',
    })),
  );
  for (const [key, subject] of letters) {
    world.template(key, { subject, fromEmail: 'us@example.com' });
  }
}

function pick<T>({ random }: Stage, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

/**
 * Expects a run to be done, or to withhold only what a person approves then: where most of those
 * whose opt-out the CRM had stated come back at once, no configuration lets them pass unseen.
 */
async function expectDone(stage: Stage, end: Ended): Promise<'done' | 'approved'> {
  const { status, reasons, plan, problems } = end.stdout === '' ? {} : JSON.parse(end.stdout);
  if (status !== 'held') {
    expect({ ...end, stdout: { status, reasons } }).toMatchObject({
      code: 0,
      signal: null,
      stdout: { status: 'done', reasons: [] },
    });
    return 'done';
  }
  expect({ ...end, reasons }).toMatchObject({ code: 3, signal: null, reasons: [] });
  const open = problems.filter((problem: { class: string }) => problem.class !== 'conflict');
  expect(open).toMatchObject([
    { key: 'opt_in', reason: expect.stringContaining('whose opt-out the CRM stated') },
  ]);
  const approved = await launch(['approve', plan, '-c', stage.file, '--by', 'somebody']).ended;
  expect(approved).toMatchObject({ code: 0, signal: null });
  return 'approved';
}

/** Nobody disturbs it any more: one run ends all that was begun, and the next finds it so. */
async function finish(stage: Stage): Promise<void> {
  const { world } = stage;
  if ((await expectDone(stage, await begin(stage).ended)) === 'approved') {
    expect(await expectDone(stage, await begin(stage).ended)).toBe('done');
  }
  const { sent, unknown, planned } = statesIn(stage.journal);
  expect({ sent, unknown, planned }).toEqual({});
  world.writes();
  expect(await expectDone(stage, await begin(stage).ended)).toBe('done');
  expect(world.writes()).toEqual([]);
  expectWanted(stage);
  expectHistory(stage);
}

/**
 * Everybody is as the CRM wants them, or left; or may have left, for all that can be known: a
 * killed process had sent something, and only the next one found an opt-out.
 */
function expectWanted(stage: Stage): void {
  const { world, crm, letters, left } = stage;
  const enrolled = world.emulator.world
    .requests()
    .filter(({ route }) => route === 'contacts.enrol');
  const acted = new Map(
    enrolled.map(({ email, channelId, subscription }) => [`${email} ${channelId}`, subscription]),
  );
  const theirs = notOurs(stage);
  const isOut = (email: string, channel: string): boolean => {
    const who = `${email} ${channel}`;
    const doubted = acted.get(who) === 'opt_out' && theirs.has(who);
    return (
      doubted || left.some((one) => one.email === email && (one.channel ?? channel) === channel)
    );
  };
  const wrong = [...crm].flatMap(([email, wanted]) =>
    channels.flatMap((channel) => {
      const is = world.shown(email)?.[channel];
      const wish = subscribed[wanted[channel] ?? ''];
      if (wish === 'opt_in' && is !== 'opt_in' && !isOut(email, channel)) {
        return `${email} is ${is} in ${channel}, and the CRM wants them in`;
      }
      return wish === 'opt_out' && is === 'opt_in' ? `${email} is in ${channel}` : [];
    }),
  );
  expect(wrong).toEqual([]);
  const addresses = world.emulator.world.contacts().map(({ email }) => email);
  expect(addresses).toHaveLength(new Set(addresses).size);
  const shown = world.emulator.world.templates();
  expect(shown).toHaveLength(letters.size);
  const subjects = shown.map(({ name, subject }) => [name, subject] as const);
  expect(new Map<string, unknown>(subjects)).toEqual(letters);
}

/** What the platform carried out, request by request. */
function expectHistory({ world, left, periods }: Stage): void {
  const requests = world.emulator.world.requests();
  const wrong = requests.flatMap(({ route, status, email = '', ...request }, at) => {
    if (status >= 400) return `${route} was answered by ${status}`;
    if (route !== 'contacts.enrol') return [];
    const { channelId = '', subscription } = request;
    const what = `request ${at}: ${subscription} of ${email} in ${channelId}`;
    const wanted = periods.findLast(({ from }) => from <= at)?.crm.get(email)?.[channelId];
    if (subscribed[wanted ?? ''] !== subscription) return `${what}, and the CRM said "${wanted}"`;
    const hasLeft = left.some(
      (one) => one.email === email && (one.channel ?? channelId) === channelId && one.after <= at,
    );
    return hasLeft && subscription === 'opt_in' ? `${what}, who had left` : [];
  });
  expect(wrong).toEqual([]);
}
