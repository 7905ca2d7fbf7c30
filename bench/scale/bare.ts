/** Every page of a list, side by side, with nothing but undici and JSON.parse. */
import pLimit from 'p-limit';
import { Pool } from 'undici';
import { given } from '../stage/child.ts';

export interface BareTask {
  url: string;
  pages: number;
  atOnce: number;
}

const { url, pages, atOnce }: BareTask = JSON.parse(given());
const pool = new Pool(url, { pipelining: 1 });
const limited = pLimit(atOnce);
let contacts = 0;

async function read(page: number): Promise<void> {
  const path = `/api/contacts/list?page=${page}&limit=100`;
  const headers = { 'x-api-key': 'key_bench' };
  const { body } = await pool.request({ method: 'GET', path, headers });
  contacts += JSON.parse(await body.text()).contacts.length;
}

const beganMs = performance.now();
await Promise.all(
  Array.from({ length: pages }, async (_, at) => limited(async () => read(at + 1))),
);
process.send?.({ ms: performance.now() - beganMs, contacts });
