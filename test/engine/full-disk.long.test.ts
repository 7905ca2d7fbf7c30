/**
 * What can be wrong with the disk under the snapshot, from the command line: at the start, and
 * between the platform's answer and its record. The disks are file systems made for the test.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest';
import {
  createWorld,
  launch,
  statesIn,
  type Ended,
  type Person,
  type World,
} from '../support/engine/engine-world.ts';

type Place = World & { file: string; folder: string; journal: string };

async function arranged(people: readonly Person[]): Promise<Place> {
  const world = await createWorld({ kinds: ['contact'] });
  world.people(people);
  const file = world.config();
  const folder = join(world.folder, 'cli');
  mkdirSync(folder);
  return { ...world, file, folder, journal: join(folder, 'snapshot.sqlite') };
}

const few = [
  { email: 'ann@example.com', news: 'yes' },
  { email: 'bob@example.com', news: 'yes', product: 'no' },
];
const many = (count: number): Person[] =>
  Array.from({ length: count }, (_, at) => ({ email: `p${at}@example.com`, news: 'yes' }));

async function sync(file: string): Promise<Ended> {
  const ended = await launch(['sync', '-c', file, '--quiet']).ended;
  expect(ended.signal).toBeNull();
  // No stack trace and no address.
  expect(ended.stderr).not.toMatch(/this is a bug|\n\s+at /);
  expect(ended.stderr + ended.stdout).not.toContain('@example.com');
  return ended;
}

/**
 * A run that ends for the disk's sake says so once. Besides, it says only that a log, which stops
 * no run, could not be written.
 */
function expectOneLine({ code, stdout, stderr }: Ended, why: RegExp): void {
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  const lines = stderr.trimEnd().split('\n');
  const aboutLogs = lines.filter((line) => /the (request|audit) log/.test(line));
  expect(aboutLogs.length).toBeLessThanOrEqual(2);
  const others = lines.filter((line) => !aboutLogs.includes(line));
  expect(others).toEqual([expect.stringMatching(why)]);
}

function ran(command: string, ...args: string[]): boolean {
  return spawnSync(command, args).status === 0;
}

/** A file system of its own, where that is allowed; else the test is left out, with a word. */
function mounted(context: TestContext, { folder }: Place, size: string): void {
  const done = ran('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder);
  if (!done) context.skip('needs the right to mount a file system');
  onTestFinished(() => void ran('umount', '-l', folder));
}

function remount({ folder }: Place, how: string): void {
  expect(ran('mount', '-o', `remount,${how}`, folder)).toBe(true);
}

/** Ends what was begun: everybody is there, enrolled once. */
async function expectMended(place: Place, count: number): Promise<void> {
  expect((await sync(place.file)).code).toBe(0);
  expect(place.emulator.world.contacts()).toHaveLength(count);
  const { sent, unknown, planned } = statesIn(place.journal);
  expect({ sent, unknown, planned }).toEqual({});
  const writes = place.emulator.world.requests().filter(({ method }) => method !== 'GET');
  expect(writes.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 201));
  place.writes();
  expect((await sync(place.file)).code).toBe(0);
  expect(place.writes()).toEqual([]);
}

describe('a disk, at the start of a run', () => {
  test('full: nothing is sent', async (context) => {
    const place = await arranged(few);
    mounted(context, place, '16k');
    expectOneLine(await sync(place.file), /disk is full|disk or the permissions/);
    expect(place.writes()).toEqual([]);
  });

  test.for([true, false])('read-only (made before: %s): nothing is sent', async (made, context) => {
    const place = await arranged(few);
    mounted(context, place, '64m');
    if (made) expect((await sync(place.file)).code).toBe(0);
    place.people([{ email: 'zoe@example.com', news: 'yes' }]);
    remount(place, 'ro');
    place.writes();
    expectOneLine(await sync(place.file), /\/cli\/snapshot\.sqlite.*: .*(read-only|permissions)/);
    expect(place.writes()).toEqual([]);
    // To look it is good enough, and `check` says that a run would fail.
    for (const [command, expected] of [
      ['status', 0],
      ['runs', 0],
      ['check', 1],
    ] as const) {
      const { code, stdout } = await launch([command, '-c', place.file]).ended;
      expect({ command, code }).toEqual({ command, code: expected });
      if (made && command === 'status') expect(stdout).toMatch(/recorded +2 contacts/);
    }
    remount(place, 'rw');
    expect((await sync(place.file)).code).toBe(0);
  });
});

test('a full disk is good enough to look, and is named by what needs it', async (context) => {
  const place = await arranged(few);
  full.prepare(context, place);
  expect((await sync(place.file)).code).toBe(0);
  full.break(place, 0);
  const codes = { status: 0, runs: 0, plan: 0, explain: 0, sync: 1 };
  for (const [command, code] of Object.entries(codes)) {
    const named = command === 'explain' ? ['ann@example.com'] : [];
    const ended = await launch([command, '-c', place.file, ...named]).ended;
    expect({ command, code: ended.code, stderr: ended.stderr }).toEqual({
      command,
      code,
      stderr: code === 0 ? '' : expect.stringMatching(full.says),
    });
  }
});

test('a disk too small for all changes fails in one line, and the next run completes them', async (context) => {
  const place = await arranged(many(800));
  mounted(context, place, '700k');
  expectOneLine(await sync(place.file), /snapshot\.sqlite\S*: the disk is full; nothing is lost/);
  expect(place.emulator.world.contacts().length).toBeLessThan(800);
  remount(place, 'size=64m');
  await expectMended(place, 800);
});

/** One way in which a disk ends under a running process, and how it is mended. */
interface Failing {
  says: RegExp;
  /** Leaves the test out where it may not be had. */
  prepare(context: TestContext, place: Place): void;
  break(place: Place, pid: number): void;
  mend(place: Place): void;
}

const filler = ({ folder }: Place): string => join(folder, 'filler');

const full: Failing = {
  says: /snapshot\.sqlite\S*: the disk is full; nothing is lost/,
  prepare: (context, place) => mounted(context, place, '8m'),
  break(place) {
    expect(() => writeFileSync(filler(place), Buffer.alloc(9 << 20))).toThrow('ENOSPC');
  },
  mend: (place) => rmSync(filler(place)),
};

/** A kernel that finds its file system damaged lets nobody write to it any more, open or not. */
const readOnly: Failing = {
  says: /read-only|mend the disk/,
  prepare(context, place) {
    const image = imageOf(place);
    writeFileSync(image, '');
    truncateSync(image, 16 << 20);
    const made =
      ran('mkfs.ext4', '-q', '-F', image) && ran('mount', '-o', 'loop', image, place.folder);
    if (!made) context.skip('needs the right to mount a file system, and ext4');
    onTestFinished(() => void ran('umount', '-l', place.folder));
  },
  break: (place) => expect(ran('mount', '-o', 'remount,abort', place.folder)).toBe(true),
  mend(place) {
    expect(ran('umount', place.folder)).toBe(true);
    // 1: damage was found and mended.
    expect([0, 1]).toContain(spawnSync('e2fsck', ['-p', imageOf(place)]).status);
    expect(ran('mount', '-o', 'loop', imageOf(place), place.folder)).toBe(true);
  },
};

const imageOf = ({ folder }: Place): string => `${folder}.image`;

/** Every write fails, for no reason that SQLite has a word of its own for. */
const dead: Failing = {
  says: /snapshot\.sqlite\S*: disk I\/O error \(SQLITE_IOERR\w*\) → mend the disk/,
  prepare(context) {
    if (!ran('prlimit', '--version')) context.skip('needs prlimit');
  },
  break: (_, pid) => expect(ran('prlimit', '--pid', String(pid), '--fsize=0')).toBe(true),
  mend: () => undefined,
};

describe('a disk error in the middle of apply', () => {
  const ways = { full, readOnly, dead };
  const moments = ['arrived', 'acted'] as const;
  const cases = Object.keys(ways).flatMap((way) => moments.map((when) => [way, when] as const));
  test.for(cases)(
    '%s when an enrolment has %s loses nothing, and is reported in one line',
    async (one, context) => {
      const [name, when] = one;
      const way = ways[name as keyof typeof ways];
      const place = await arranged(many(120));
      way.prepare(context, place);
      const { child, ended } = launch(['sync', '-c', place.file, '--quiet']);
      place.server.watch[when] = ({ route, nth }) => {
        if (route === 'contacts.enrol' && nth === 40) way.break(place, child.pid ?? 0);
      };
      expectOneLine(await ended, way.says);
      place.server.watch = {};
      way.mend(place);
      // Answered, and not written down: the next run reads what became of it.
      expect(statesIn(place.journal)['sent']).toBeGreaterThan(0);
      expect(place.emulator.world.contacts().length).toBeLessThan(120);
      await expectMended(place, 120);
    },
  );
});
