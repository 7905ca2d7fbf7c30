/**
 * One worker in a process of its own: node fleet-process.ts URL REDIS NAME REQUESTS; says what it
 * did.
 */
import { countLate } from '../rate-limit/limit-scenario.ts';
import { startWorker, type ChildDone } from './fleet.ts';

const [url = '', redis = '', name = '', requests = '0'] = process.argv.slice(2);
const late = countLate(Number(requests));
const worker = startWorker({ url, redis, name });
await worker.send(Number(requests));
await worker.close();
const done: ChildDone = { ...worker.result(), late: late() };
process.stdout.write(JSON.stringify(done));
