/** The budget that processes share, by the messages of its processes. */
import { expect, test } from 'vitest';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';
import {
  keepMs,
  newFleet,
  serveMessage,
  fleetBudget,
  type Message,
  type Reply,
  type Report,
} from '../../../src/http/rate-limit/shared/fleet-budget.ts';

/** While no response is known, and while they are fast. */
const LEASE_MS = { unknown: 5000, fast: 2000 };
const LIMIT = { limit: 100, windowMs: 300 };

/** The shared clock, in milliseconds since the epoch. */
let nowMs = 1_800_000_000_000;
const pass = (ms: number): void => void (nowMs += ms);

function messageOf(worker: string, more: Partial<Message> = {}): Message {
  const usual = { reports: [], want: 0, reserve: 0, jitter: 0 };
  return { worker, ...usual, away: false, leaving: false, ...more };
}

type Shown = Partial<Observation & { ageMs: number; tripMs: number }>;

/** One route of one organization, asked by any process. Each call takes half a millisecond. */
function route() {
  let text = JSON.stringify(newFleet(nowMs));
  const ask = (worker: string, message: Partial<Message>): Reply => {
    pass(0.5);
    const fleet = fleetBudget.parse(JSON.parse(text));
    const reply = serveMessage(fleet, messageOf(worker, message), nowMs);
    text = JSON.stringify(fleet);
    return reply;
  };
  const lease = (worker: string, want = 16) => ask(worker, { want });
  const report = (worker: string, ...reports: Report[]) => ask(worker, { reports });
  /** So many requests were answered, one after the other; so many are left. */
  const use = (requests: number, left: number): void => {
    for (let at = requests - 1; at >= 0; at -= 1) {
      const { lease: id } = lease('first', 1);
      report('first', answer(id, { remaining: left + at }));
    }
  };
  const empty = (): void => void (text = JSON.stringify(newFleet(nowMs)));
  return { ask, lease, report, use, empty, text: () => text };
}

function answer(lease: string | undefined, { ageMs = 0, tripMs = 2, ...shown }: Shown): Report {
  const nothing = { remaining: undefined, resetInMs: undefined, dateMs: undefined };
  const seen = { refused: false, retryAfterMs: undefined, ...nothing, ...LIMIT, ...shown };
  return { is: 'answer', lease: lease ?? '', n: 1, ageMs, tripMs, seen };
}

const refusal = (lease: string | undefined, retryAfterMs: number) =>
  answer(lease, { refused: true, remaining: 0, retryAfterMs });

test('an unknown limit: one probe for the whole fleet, then as its answer says', () => {
  const { lease, report } = route();
  const probe = lease('a');
  expect(probe).toMatchObject({ n: 1, workers: 1 });
  for (const worker of ['a', 'b', 'c']) {
    const { n, waitMs } = lease(worker);
    expect(n).toBe(0);
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThan(100);
  }
  const told = report('a', answer(probe.lease, { remaining: 99 }));
  expect(told).toMatchObject({ workers: 3, limit: { ...LIMIT, left: 99, others: 0 } });
  expect(lease('b').n).toBeGreaterThan(0);
});

test('leased permits never exceed what is left', () => {
  const { lease, use } = route();
  use(40, 60);
  let out = 0;
  for (let times = 0; times < 20; times += 1) out += lease(`w${times % 4}`).n;
  expect(out).toBeGreaterThan(20);
  expect(out).toBeLessThanOrEqual(60);
});

test('a share is left for other workers that wait', () => {
  const { ask, use } = route();
  use(40, 4);
  ask('other', { want: 0 });
  use(1, 3);
  expect(ask('b', { want: 16 }).n).toBeLessThanOrEqual(2);
});

test('exhausted: wait until a window after the first answer, then two', () => {
  const { ask, lease, report } = route();
  const { lease: id } = lease('a');
  report('a', answer(id, { remaining: 0 }));
  const { n, waitMs } = ask('a', { want: 16 });
  expect(n).toBe(0);
  expect(waitMs).toBeGreaterThan(LIMIT.windowMs - 50);
  expect(waitMs).toBeLessThan(LIMIT.windowMs + 50);
  pass(waitMs + 5);
  // A slow start for all of them.
  expect([ask('a', { want: 16 }).n, ask('b', { want: 16 }).n]).toEqual([2, 0]);
});

test('a trickle of units, even one a window: asked for after those ahead had their turn', () => {
  const { lease, report, use } = route();
  use(60, 40);
  const { lease: more } = lease('a', 1);
  pass(30);
  report('a', answer(more, { remaining: 45 }));
  const { lease: less } = lease('a', 1);
  report('a', answer(less, { limit: 1, remaining: 0 }));
  const [first, second] = ['a', 'b'].map((worker) => lease(worker));
  expect([first?.n, second?.n]).toEqual([0, 0]);
  expect(first?.waitMs).toBeGreaterThan(LIMIT.windowMs / 2);
  expect(first?.waitMs).toBeLessThan(LIMIT.windowMs + 50);
  expect(second?.waitMs).toBeGreaterThan(2 * LIMIT.windowMs);
  expect(second?.waitMs).toBeLessThan(3 * LIMIT.windowMs);
});

test('beside others, a log is asked again when our own requests no longer count', () => {
  const { ask, lease, report } = route();
  const use = (requests: number, left: number): void => {
    for (let at = requests - 1; at >= 0; at -= 1) {
      const { lease: id } = lease('a', 1);
      report('a', answer(id, { limit: 20, remaining: left + at }));
    }
  };
  use(8, 12);
  pass(150);
  // Others take five.
  use(7, 0);
  pass(150);
  // A window after the first requests eight are free again, and are used.
  use(8, 1);
  // Nothing comes back bit by bit.
  pass(130);
  use(1, 0);
  const { n, waitMs } = ask('a', { want: 16 });
  expect(n).toBe(0);
  // The seven of the middle count no more after 300 ms; three units would take 45 ms to come back.
  expect(waitMs).toBeLessThan(20);
});

test('an answer counts although it is slower than a lease', () => {
  const { lease, report } = route();
  const tripMs = LEASE_MS.unknown + 100;
  const answered = (remaining: number) => {
    const { lease: id } = lease('a', 1);
    pass(tripMs);
    return report('a', answer(id, { tripMs, remaining }));
  };
  expect(answered(99).limit.left).toBe(99);
  expect(answered(98).limit.left).toBe(98);
});

test('an expired lease counts as spent, for a window', () => {
  const { ask, lease, use } = route();
  use(4, 6);
  const rest = lease('dead').n;
  expect(rest).toBeGreaterThan(0);
  pass(LEASE_MS.fast + 10);
  const { limit } = ask('b', { want: 0 });
  expect(limit.left).toBe(6 - rest);
});

test('returned permits are free again, those of a lost answer are not', () => {
  const { lease, report, use } = route();
  use(30, 10);
  const one = lease('a');
  const back = report('a', { is: 'back', lease: one.lease ?? '', n: one.n });
  expect(back.limit.left).toBe(10);
  const two = lease('a', 1);
  const lost = report('a', { is: 'lost', lease: two.lease ?? '', n: 1 });
  expect(lost.limit.left).toBe(9);
});

test('an older answer that is reported later tells of no other program', () => {
  const { lease, report, use, text } = route();
  const companyUntilMs = () => fleetBudget.parse(JSON.parse(text())).limits.companyUntilMs;
  use(90, 10);
  const slow = lease('a', 1);
  // Half of the ninety no longer count.
  pass(LIMIT.windowMs - 45);
  const late = lease('b', 1);
  const known = companyUntilMs();
  report('a', answer(slow.lease, { remaining: 9, ageMs: 1, tripMs: 250 }));
  report('b', answer(late.lease, { remaining: 53 }));
  expect(companyUntilMs()).toBe(known);
  const least = lease('b', 1);
  report('b', answer(least.lease, { remaining: 30 }));
  expect(companyUntilMs()).toBeGreaterThan(known);
});

test('an older answer may lower what is left, and not raise it', () => {
  const { lease, report, use } = route();
  use(30, 60);
  const early = lease('a', 2);
  const late = lease('b', 1);
  const marked = report('b', answer(late.lease, { remaining: 20 }));
  expect(marked.limit.left).toBe(20);
  const raised = report('a', answer(early.lease, { remaining: 59 }));
  expect(raised.limit.left).toBe(20);
  const lowered = report('a', answer(early.lease, { remaining: 15 }));
  expect(lowered.limit.left).toBe(15);
  const unknown = report('c', answer('1.2:3', { remaining: 90 }));
  expect(unknown.limit.left).toBe(15);
  const later = lease('a', 1);
  const fresh = report('a', answer(later.lease, { remaining: 50 }));
  expect(fresh.limit.left).toBe(50);
});

test('429: nobody sends before the wait is over, which never gets shorter; then one', () => {
  const { lease, report, use } = route();
  use(10, 50);
  const [a, b] = [lease('a', 1), lease('b', 1)];
  report('a', refusal(a.lease, 1000));
  const first = lease('c');
  expect(first).toMatchObject({ n: 0 });
  expect(first.waitMs).toBeGreaterThan(950);
  report('b', refusal(b.lease, 400));
  const second = lease('c');
  expect(second.waitMs).toBeGreaterThan(first.waitMs - 100);
  pass(second.waitMs + 5);
  const [probe, none] = [lease('a'), lease('b')];
  expect([probe.n, none.n]).toEqual([1, 0]);
  // Refused again: longer.
  report('a', refusal(probe.lease, 400));
  expect(lease('b').waitMs).toBeGreaterThan(350);
});

test('the same Retry-After is a different wait for each worker', () => {
  const waits = [0, 0.9].map((jitter) => {
    const { ask, lease } = route();
    const { lease: id } = lease('a');
    return ask('a', { reports: [refusal(id, 1000)], want: 1, jitter }).waitMs;
  });
  const [least = 0, more = 0] = waits;
  expect(least).toBeGreaterThan(999);
  expect(more - least).toBeGreaterThan(20);
});

test('emptied, or after an absence: unknown again, one probe', () => {
  const { empty, ask, lease, use } = route();
  use(10, 50);
  expect(ask('b', { want: 16, away: true }).n).toBe(1);
  expect(lease('a').n).toBe(0);
  empty();
  expect(lease('a').n).toBe(1);
  expect(lease('b').n).toBe(0);
});

test('emptied: what others used before is not ours to use', () => {
  const { lease, report, use } = route();
  use(1, 3);
  const { n, lease: id } = lease('a');
  expect(n).toBeLessThanOrEqual(3);
  report('a', answer(id, { remaining: 0 }));
  expect(lease('b').n).toBe(0);
});

test('a worker that leaves is not counted any more', () => {
  const { ask } = route();
  ask('a', {});
  expect(ask('b', {}).workers).toBe(2);
  ask('b', { leaving: true });
  expect(ask('a', {}).workers).toBe(1);
});

test('a reserve is left', () => {
  const { ask } = route();
  const { lease: id } = ask('a', { want: 1, reserve: 0.5 });
  const reports = [answer(id, { remaining: 50 })];
  expect(ask('a', { reports, want: 16, reserve: 0.5 })).toMatchObject({ n: 0, limit: { left: 0 } });
});

/** Nothing is left of a hundred in a window. */
function spent(shown: Shown = { windowMs: 60_000 }) {
  const made = route();
  const { lease: id } = made.lease('first', 1);
  made.report('first', answer(id, { remaining: 0, ...shown }));
  return made;
}

test('nobody asks in vain: the window is waited for, one after the other', () => {
  const { lease } = spent();
  const [first = 0, ...others] = ['a', 'b', 'c'].map((worker) => lease(worker).waitMs);
  expect(first).toBeGreaterThan(59_900);
  expect(others[0]).toBeGreaterThan(first);
  expect(others[1]).toBeGreaterThan(others[0] ?? 0);
  expect(others[1]).toBeLessThan(60_100);
});

test.each([
  ['three windows later', { windowMs: 500 }, 1500],
  ['three seconds later, in case those ahead are gone', { windowMs: 2000 }, 3000],
  ['a window later, if that is longer', { windowMs: 5000 }, 5000],
  ['a window later, if the limit is unknown', { windowMs: 500, limit: undefined }, 500],
])('behind 249 others that share 100 in a window, one asks %s', (_, shown, waitMs) => {
  const { lease } = spent(shown);
  const waits = Array.from({ length: 250 }, (_one, at) => lease(`worker${at}`).waitMs);
  // They ask one after the other.
  const apartMs = 249 * 4;
  expect(waits.at(-1)).toBeGreaterThan(waitMs + apartMs - 150);
  expect(waits.at(-1)).toBeLessThan(waitMs + apartMs + 50);
});

test('permits in flight may be returned: others look soon', () => {
  const { lease, use } = route();
  use(40, 10);
  lease('a', 5);
  lease('b', 5);
  lease('c', 5);
  const { n, waitMs } = lease('d');
  expect(n).toBe(0);
  expect(waitMs).toBeLessThan(200);
});

test('a process that does not ask again in time loses its share', () => {
  const granted = [61_500, 63_000].map((ms) => {
    const { lease } = spent();
    for (const worker of ['dead', 'gone']) lease(worker);
    pass(ms);
    return lease('a').n;
  });
  // A slow start: two at once.
  expect(granted).toEqual([1, 2]);
});

test('what a process asked for and did not get, it asks for after its own responses', () => {
  const { lease, use } = route();
  use(10, 80);
  const { n, waitMs } = lease('a', 100);
  expect(n).toBeGreaterThan(0);
  expect(n).toBeLessThan(100);
  expect(waitMs).toBeGreaterThanOrEqual(2);
});

test('an answer that comes with the end of its lease is not counted as lost', () => {
  const { lease, report, use } = route();
  use(10, 90);
  const { lease: id } = lease('a', 1);
  pass(10_000);
  expect(report('a', answer(id, { remaining: 89 })).limit.left).toBe(89);
});

test('it is stored briefly, with numbers and the names of processes in it', () => {
  const { use, text } = route();
  use(20, 50);
  const fleet = fleetBudget.parse(JSON.parse(text()));
  const keptMs = keepMs(fleet, messageOf('a'));
  expect(keptMs).toBeGreaterThan(1000);
  expect(keptMs).toBeLessThan(5 * 60_000);
  expect(text().length).toBeLessThan(3000);
});

test('it is stored as long as what a message shows has an effect', () => {
  const day = 86_400_000;
  const kept = (shown: Shown): number =>
    keepMs(undefined, messageOf('a', { reports: [answer('', shown)] }));
  expect(kept({ windowMs: day / 2 })).toBeGreaterThan(day);
  expect(kept({ retryAfterMs: 3_600_000 })).toBeGreaterThan(3_600_000);
  expect(kept({ resetInMs: 100 * day })).toBe(2 * day);
});
