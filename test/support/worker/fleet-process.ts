/**
 * One worker in a process of its own: node fleet-process.ts URL REDIS NAME REQUESTS; says what it
 * did.
 */
import { startWorker } from './fleet.ts';

const [url = '', redis = '', name = '', requests = '0'] = process.argv.slice(2);
const worker = startWorker({ url, redis, name });
await worker.send(Number(requests));
await worker.close();
process.stdout.write(JSON.stringify(worker.result()));
