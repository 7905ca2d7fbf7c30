/**
 * The snapshot while another process has it locked: at the start nothing is sent, in the middle
 * nothing is lost and nothing done twice. The process that locks is a real one, too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  createWorld,
  launch,
  statesIn,
  type Ended,
  type World,
} from '../support/engine/engine-world.ts';

const people = Array.from({ length: 60 }, (_, at) => ({
  email: `p${at}@example.com`,
  news: at % 2 ? 'yes' : 'no',
}));

type Place = World & { file: string; journal: string };

async function arranged(): Promise<Place> {
  const world = await createWorld();
  for (const { email, news } of people) {
    if (news === 'no') world.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  }
  world.people(people);
  world.template('welcome', { subject: 'Hello', fromEmail: 'us@example.com' });
  const file = world.config({ timeoutMs: 10_000 });
  return { ...world, file, journal: join(world.folder, 'cli/snapshot.sqlite') };
}

const sync = async (file: string): Promise<Ended> => launch(['sync', '-c', file, '--json']).ended;

interface Locker {
  /** Resolves once the lock is held; let go of after `forMs`, or when told. */
  lock(forMs?: number): Promise<void>;
  release(): Promise<void>;
}

/**
 * A process that has the snapshot open. `alone`: it keeps all others out, readers too; that can
 * be had only while nobody else has the snapshot open.
 */
async function locker({ journal }: Place, { alone = false } = {}): Promise<Locker> {
  const script = `
    import Database from 'better-sqlite3';
    const [path, alone] = process.argv.slice(1);
    const db = new Database(path, { timeout: 20_000 });
    if (alone === 'true') db.pragma('locking_mode = exclusive');
    const release = () => {
      db.exec('rollback');
      db.close();
      process.exit();
    };
    process.stdin.on('data', (word) => {
      if (String(word) === 'release') release();
      db.exec('begin exclusive');
      if (Number(word) > 0) setTimeout(release, Number(word));
      console.log('held');
    });
    console.log('open');`;
  mkdirSync(dirname(journal), { recursive: true });
  const args = ['--input-type=module', '-e', script, journal, String(alone)];
  const cwd = join(import.meta.dirname, '../..');
  const child = spawn(process.execPath, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return {
    async lock(forMs = 0) {
      child.stdin.write(String(forMs));
      await once(child.stdout, 'data');
    },
    async release() {
      child.stdin.write('release');
      await closed;
    },
  };
}

/** Come back later, in one line that names the file. */
function expectLater(end: Ended, { journal }: Place): void {
  expect(end).toMatchObject({ code: 75, signal: null });
  const line = `crm-mirror: ${journal}: another process has locked this snapshot → run again when it has let go\n`;
  expect(end.stderr).toBe(line);
  expect(JSON.parse(end.stdout)).toMatchObject({ status: 'failed' });
}

/** Everybody is as they should be, by as few requests as that takes. */
async function expectDone(place: Place): Promise<void> {
  const { emulator, shown } = place;
  for (const { email, news } of people) {
    expect(shown(email)).toEqual({ ch_news: news === 'yes' ? 'opt_in' : 'opt_out' });
  }
  expect(emulator.world.contacts()).toHaveLength(people.length);
  expect(emulator.world.templates()).toMatchObject([{ fromEmail: 'us@example.com' }]);
  const { sent, unknown, planned } = statesIn(place.journal);
  expect({ sent, unknown, planned }).toEqual({});
  expect(emulator.world.requests().filter(({ status }) => status >= 300)).toEqual([]);
  const enrolled = emulator.world.requests().filter(({ route }) => route === 'contacts.enrol');
  expect(enrolled).toHaveLength(people.length);
  place.writes();
  expect((await sync(place.file)).code).toBe(0);
  expect(place.writes()).toEqual([]);
}

test('a snapshot locked at the start: exit 75, and nothing is sent', async () => {
  const ways = ['the first run', 'writers', 'everybody'].map(async (out) => {
    const place = await arranged();
    if (out !== 'the first run') {
      place.people([]);
      expect((await sync(place.file)).code).toBe(0);
      place.people(people);
    }
    const other = await locker(place, { alone: out === 'everybody' });
    await other.lock();
    place.writes();
    expectLater(await sync(place.file), place);
    expect(place.writes()).toEqual([]);
    await other.release();
    expect((await sync(place.file)).code).toBe(0);
    await expectDone(place);
  });
  await Promise.all(ways);
});

/** The platform answers from the 10th enrolment on only once the lock is held. */
async function lockedInTheMiddle(place: Place, other: Locker, forMs?: number): Promise<Ended> {
  let held: Promise<void> | undefined;
  place.server.watch.arrived = async ({ route, nth }) => {
    if (route !== 'contacts.enrol' || nth < 10) return;
    held ??= other.lock(forMs);
    await held;
  };
  const end = await sync(place.file);
  expect(held).toBeDefined();
  place.server.watch = {};
  return end;
}

test('a snapshot locked for a second: the run waits and continues', async () => {
  const place = await arranged();
  const end = await lockedInTheMiddle(place, await locker(place), 1_000);
  expect(end).toMatchObject({ code: 0 });
  expect(JSON.parse(end.stdout)).toMatchObject({ status: 'done', reasons: [] });
  await expectDone(place);
});

/*
 * Also here 75 and not 1: nobody has anything to mend, the next run reads what became of what was
 * sent and not recorded. An alarm on exit codes is for what does not end by itself.
 */
test('a snapshot locked for long: exit 75, and nothing is lost', async () => {
  const place = await arranged();
  const other = await locker(place);
  expectLater(await lockedInTheMiddle(place, other), place);
  // The answers came and could not be written down.
  expect(statesIn(place.journal)['sent']).toBeGreaterThan(0);
  await other.release();
  const next = await sync(place.file);
  expect(next.code).toBe(0);
  expect(JSON.parse(next.stdout)).toMatchObject({ status: 'done', reasons: [] });
  await expectDone(place);
});

test('two first runs at once: one makes the snapshot, the other exits with 75 or runs after it', async () => {
  for (let times = 0; times < 3; times += 1) {
    const place = await arranged();
    const both = await Promise.all([sync(place.file), sync(place.file)]);
    for (const { code, stderr } of both) {
      expect([0, 75]).toContain(code);
      expect(stderr).not.toContain('bug');
    }
    expect(both.map(({ code }) => code)).toContain(0);
    await expectDone(place);
  }
});
