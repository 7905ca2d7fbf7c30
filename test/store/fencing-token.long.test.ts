/**
 * The lease and its fencing token. A dead holder's lease ends with it; where the lock itself was
 * lost, only the process that took the mirror over still writes. All with real processes.
 */
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Busy } from '../../src/domain/errors.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';
import { createWorld, launch, statesIn, type World } from '../support/engine/engine-world.ts';

const people = Array.from({ length: 60 }, (_, at) => ({
  email: `p${at}@example.com`,
  news: 'yes',
}));

interface Place extends World {
  file: string;
  path: string;
}

/** `timeoutMs`: the time limit of a request, which must outlast the start of the second process. */
async function arranged(timeoutMs = 8_000): Promise<Place> {
  const world = await createWorld({ kinds: ['contact'] });
  world.people(people);
  return {
    ...world,
    file: world.config({ timeoutMs }),
    path: join(world.folder, 'cli/snapshot.sqlite'),
  };
}

/** Runs a process up to its n-th enrolment: that and all later ones wait for the door to open. */
async function runUpTo(place: Place, nth: number) {
  const met = Promise.withResolvers<void>();
  const door = Promise.withResolvers<void>();
  place.server.watch.arrived = ({ route, nth: now }) => {
    if (route !== 'contacts.enrol' || now < nth) return undefined;
    met.resolve();
    return door.promise;
  };
  const process = launch(['sync', '-c', place.file]);
  await met.promise;
  const open = (): void => {
    place.server.watch = {};
    door.resolve();
  };
  return { ...process, open };
}

const enrolled = ({ emulator }: World): number =>
  emulator.world.requests().filter(({ route }) => route === 'contacts.enrol').length;

test.each(['SIGKILL', 'SIGSTOP, then SIGKILL'])(
  'a lease ends with its dead holder: %s',
  async (how) => {
    const place = await arranged();
    const first = await runUpTo(place, 10);
    if (how !== 'SIGKILL') {
      first.child.kill('SIGSTOP');
      // Stopped, it holds the mirror as before.
      expect((await launch(['sync', '-c', place.file]).ended).code).toBe(75);
    }
    first.child.kill('SIGKILL');
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });
    first.open();
    await place.server.quiet();
    // At once, without anybody having cleaned up.
    expect(await launch(['sync', '-c', place.file]).ended).toMatchObject({ code: 0 });
    expect(place.emulator.world.contacts()).toHaveLength(people.length);
    expect(enrolled(place)).toBe(people.length);
  },
);

describe('when another process takes the mirror over', () => {
  test('the first one sends and writes nothing more, and says so in one line', async () => {
    const place = await arranged(20_000);
    const first = await runUpTo(place, 10);
    const under = place.server.arrived.filter(({ route }) => route === 'contacts.enrol').length;
    // As a network file system may do: the next process gets a lock of its own.
    rmSync(`${place.path}-lease`);
    place.server.watch = {};
    const second = await launch(['sync', '-c', place.file]).ended;
    expect(second.code).toBe(0);
    const states = statesIn(place.path);
    const asked = place.server.arrived.length;
    first.open();
    const end = await first.ended;
    expect(end).toMatchObject({ code: 75, signal: null });
    const told = end.stderr.split('\n').filter((line) => !line.startsWith('applying: '));
    expect(told).toEqual([expect.stringMatching(/^crm-mirror: .*taken this mirror over.*→/), '']);
    expect(place.server.arrived).toHaveLength(asked);
    expect(statesIn(place.path)).toEqual(states);
    // What it had under way when it lost the mirror may have arrived twice, and nothing else.
    expect(enrolled(place)).toBeLessThanOrEqual(people.length + under);
    expect(place.emulator.world.contacts()).toHaveLength(people.length);
    expect((await launch(['sync', '-c', place.file]).ended).code).toBe(0);
  });

  test('a run whose snapshot was replaced ends, and leaves the new file as it is', async () => {
    const place = await arranged(20_000);
    place.people(people.slice(0, 5));
    expect((await launch(['sync', '-c', place.file]).ended).code).toBe(0);
    copyFileSync(place.path, `${place.path}.old`);
    place.people(people);
    const first = await runUpTo(place, 15);
    for (const end of ['-wal', '-shm']) rmSync(place.path + end, { force: true });
    renameSync(`${place.path}.old`, place.path);
    first.open();
    const end = await first.ended;
    expect(end.code).toBe(75);
    expect(end.stderr).toContain('the snapshot was replaced');
    expect(statesIn(place.path)).toEqual({ acked: 5 });
    expect((await launch(['sync', '-c', place.file]).ended).code).toBe(0);
    expect(enrolled(place)).toBe(people.length);
  });
});

describe('the fencing token', () => {
  function two(): { first: Snapshot; second: Snapshot } {
    const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-fence-'));
    const path = join(folder, 'a.sqlite');
    const [first, second] = [openSnapshot(path), openSnapshot(path)];
    onTestFinished(() => {
      first.close();
      second.close();
      rmSync(folder, { recursive: true });
    });
    return { first, second };
  }
  const write =
    ({ transaction, meta }: Snapshot, value: string) =>
    () =>
      transaction(() => meta.set('x', value));

  test('lets only the last process that raised it write', () => {
    const { first, second } = two();
    first.fence();
    write(first, 'a')();
    second.fence();
    expect(write(first, 'b')).toThrow(Busy);
    expect(() => first.stage(() => first.meta.set('x', 'c'))).toThrow(Busy);
    expect(second.meta.get('x')).toBe('a');
    write(second, 'd')();
    expect(first.meta.get('x')).toBe('d');
    first.fence();
    expect(write(second, 'e')).toThrow(Busy);
    expect(first.meta.get('x')).toBe('d');
  });

  test('is not asked of a process that raised none: it can pause a mirror during a run', () => {
    const { first, second } = two();
    first.fence();
    write(second, 'a')();
    write(first, 'b')();
    expect(second.meta.get('x')).toBe('b');
  });
});
