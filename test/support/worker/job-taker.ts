/**
 * Takes runs and events of a mirror, says which, and ends when it is asked to: node job-taker.ts
 * URL MIRROR. The event `never` is worked on for ever, every other one half a second.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../../src/http/system-clock.ts';
import { openEventQueue } from '../../../src/compose/queues/event-queue.ts';
import { openRunQueue } from '../../../src/compose/queues/run-queue.ts';
import { shareConnections } from '../../../src/compose/queues/shared-connections.ts';

const [url = '', mirror = ''] = process.argv.slice(2);
const shared = shareConnections('taker', systemClock);
const options = { mirror, clock: systemClock, connections: shared.to(url) };
const events = openEventQueue(options);
const runs = openRunQueue(options);
const work = async (id: string) => {
  process.stdout.write(`${id}\n`);
  await (id === 'never' ? new Promise(() => undefined) : pause(500));
  return 'done' as const;
};
events.serve(work, { concurrency: 1, failed: () => undefined });
runs.serve(async () => 'over');
process.once('SIGTERM', () => {
  void Promise.all([events.close(), runs.close()]).then(shared.close);
});
