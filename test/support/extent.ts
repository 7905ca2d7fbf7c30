import { seeded } from '../../src/emulator/shared/seeded-random.ts';

// How much of a long suite is played. `npm test` plays a sample; `npm run test:ci` a draw of the
// long files and simulations; `npm run test:all` everything. What is sampled and drawn follows from
// SEED_BASE, which vitest.config.ts takes from the commit: the same commit plays the same, the next
// one something else.

const named = process.env['TEST_EXTENT'];
export const playsAll = named === 'all';
export const playsDraw = named === 'ci';

/** The first seed of what is drawn. */
export const seedBase = Number(process.env['SEED_BASE'] ?? 1);

/** `few` in `npm test` and `npm run test:ci`, `all` in `npm run test:all`. */
export function extent(few: number, all: number): number {
  return playsAll ? all : few;
}

/** Every `nth` of them, beginning with one that the commit draws; in `npm run test:all` each. */
export function sampled<T>(cases: readonly T[], nth: number): readonly T[] {
  const first = seedBase % Math.min(nth, Math.max(cases.length, 1));
  return playsAll ? cases : cases.filter((_, at) => at % nth === first);
}

/** `n` of them, as the commit draws them; in `npm run test:all` each. */
export function drawn<T>(cases: readonly T[], n: number): T[] {
  if (playsAll) return [...cases];
  const random = seeded(seedBase);
  const keyed = cases.map((one) => ({ one, key: random() }));
  return keyed
    .toSorted((a, b) => a.key - b.key)
    .slice(0, n)
    .map(({ one }) => one);
}

// The files `*.long.test.ts` that `npm run test:ci` plays. Where several try the same promise by
// other means, the commit draws one of them.

/** Each is played. */
const always = [
  'simulation/regressions',
  'simulation/seeds',
  'simulation/rehearsal',
  'simulation/planted',
  'simulation/command',
  'e2e/first-contact/conversation',
  'engine/crash',
  'engine/killed-process',
  'engine/full-disk',
  'store/memory/killed-write',
  'commands/worker-folder',
  'worker/silent-faults',
  'package',
  'console/approvals',
  'console/audit',
  'console/configuration',
  'console/console',
  'console/deliveries',
  'console/fleet',
  'console/live',
  'console/mirrors',
  'console/people',
  'console/person-answers',
  'console/problems',
  'console/rehearsal',
  'console/runs',
  'console/sign-in',
  'console/templates',
  'console/undo',
  'deploy-pipelines',
];

/**
 * Played on a database with a server, of which the commit draws one, on all pages and time zones,
 * and on a third of the quirks; in `npm test` on SQLite and a smaller sample of them.
 */
const inFull = [
  'sources/sql',
  'sources/sql-changes',
  'sources/sql-values',
  'docs/shell-blocks',
  'engine/platform-quirks',
  'config/schedule',
];

/** One of each is played: the fence, Redis lost or hostile, workers of a folder, all others. */
const oneOf = [
  ['store/fencing-token', 'store/locked-snapshot', 'commands/handover'],
  ['worker/redis-loss', 'worker/job-release', 'commands/redis-attacker', 'commands/events'],
  ['commands/fleet', 'commands/fleet-disks', 'commands/failover'],
  ['engine/context/person-locks-random', 'sources/sqlite-process'],
  ['worker/failures', 'worker/shared-budget-fleet', 'commands/privacy', 'commands/sentinel'],
  ['commands/demo', 'commands/elsewhere', 'fuzz/fuzz', 'engine/apply/refused-changes'],
  ['http/rate-limit/ablation', 'http/rate-limit/fleet-sharing', 'http/rate-limit/socket'],
];

/** Returns the files to be played, as paths from the root of the project. */
export function drawnFiles(): string[] {
  const long = [...always, ...oneOf.flatMap((files) => drawn(files, 1))];
  return [
    ...long.map((name) => `test/${name}.long.test.ts`),
    ...inFull.map((name) => `test/${name}.test.ts`),
  ];
}
