/** How fast a CSV file is read, and in how much memory: `node bench/csv.ts [rows]`. */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { csvSource } from '../src/sources/csv/csv-source.ts';

const clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms: number, signal?: AbortSignal) =>
    setTimeout(ms, undefined, signal === undefined ? {} : { signal }),
};

function* lines(rows: number, quoted: boolean): Generator<string> {
  yield 'id,email,name,archived,newsletter\n';
  for (let id = 0; id < rows; id += 1) {
    const name = quoted ? `"Person ""No"" ${id}, the\n${id}th"` : `Person ${id}`;
    yield `${id},person${id}@example.com,${name},false,yes\n`;
  }
}

const rows = Number(process.argv[2] ?? 500_000);
const folder = await mkdtemp(join(tmpdir(), 'bench-csv-'));
try {
  for (const quoted of [false, true]) {
    const path = join(folder, 'people.csv');
    await pipeline(Readable.from(lines(rows, quoted)), createWriteStream(path));
    await utimes(path, 1, 1);
    const source = csvSource({ type: 'csv', path }, { clock, random: () => 1 });
    const started = performance.now();
    const reading = source.read({ fields: ['id'], signal: new AbortController().signal });
    let records = 0;
    let peak = 0;
    let step = await reading.next();
    while (!step.done) {
      records += step.value.length;
      peak = Math.max(peak, process.memoryUsage.rss());
      step = await reading.next();
    }
    const seconds = (performance.now() - started) / 1000;
    const megabytes = Math.round((await stat(path)).size / 1e6);
    console.log(
      `${quoted ? 'quoted' : 'simple'}: ${records} rows, ${megabytes} MB, ` +
        `${Math.round(records / seconds)} rows/s, ` +
        `peak ${Math.round(peak / 1e6)} MB, complete: ${step.value.complete}`,
    );
  }
} finally {
  await rm(folder, { recursive: true });
}
