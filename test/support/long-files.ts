/**
 * The files `*.long.test.ts` that `npm run test:ci` plays. Where several try the same promise by
 * other means, the commit draws one of them.
 */
import { drawn } from './extent.ts';

/** Each is played. */
const always = [
  'simulation/seeds',
  'simulation/rehearsal',
  'simulation/planted',
  'engine/killed-process',
  'engine/full-disk',
  'package',
];

/** Played on a database with a server, of which the commit draws one; in `npm test` on SQLite. */
const onDatabases = ['sources/sql', 'sources/sql-changes', 'sources/sql-values'];

/** One of each is played: the fence, Redis lost or hostile, workers of a folder, all others. */
const oneOf = [
  ['snapshot/fencing-token', 'snapshot/locked-snapshot', 'commands/handover'],
  ['worker/redis-loss', 'worker/job-release', 'commands/redis-attacker', 'commands/events'],
  ['commands/fleet', 'commands/fleet-disks', 'commands/fleet-move', 'commands/failover'],
  ['engine/broken-files', 'engine/context/person-locks-random', 'sources/sqlite-process'],
  ['worker/failures', 'worker/shared-budget-fleet', 'commands/privacy', 'commands/sentinel'],
  ['commands/demo', 'commands/elsewhere', 'fuzz/fuzz', 'engine/apply/refused-changes'],
  ['rate-limit/ablation', 'rate-limit/fleet-sharing', 'rate-limit/socket'],
];

/** Returns the files to be played, as paths from the root of the project. */
export function drawnFiles(): string[] {
  const long = [...always, ...oneOf.flatMap((files) => drawn(files, 1))];
  return [
    ...long.map((name) => `test/${name}.long.test.ts`),
    ...onDatabases.map((name) => `test/${name}.test.ts`),
  ];
}
