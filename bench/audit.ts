/**
 * What the audit log costs: `npm run bench audit [entries] [people]`. First the log alone, beside
 * the bare hashes of its entries; then first loads with the log and without, by turns.
 */
import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { WriteEntry } from '../src/store/memory/audit-entry.ts';
import { type Memory, openMemory } from '../src/store/memory/memory.ts';
import { verifyLog } from '../src/store/memory/verify-log.ts';
import { createEmulator } from '../src/emulator/emulator.ts';
import { run } from '../src/engine/run.ts';
import { seeded } from '../src/emulator/shared/seeded-random.ts';
import { openSnapshot } from '../src/store/open-snapshot.ts';
import { csvSource } from '../src/sources/csv/csv-source.ts';
import { directorySource } from '../src/sources/directory/directory-source.ts';
import { mirrorOf } from '../test/support/engine/engine-stage.ts';

const [entries = 1_000_000, people = 5_000] = process.argv.slice(2).map(Number);
const clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms: number, signal?: AbortSignal) => setTimeout(ms, undefined, signal && { signal }),
};
const randomHex = (bytes: number) => randomBytes(bytes).toString('hex');

/** Does the work in a folder of its own, which is removed afterwards. */
async function inFolder<T>(work: (folder: string) => T | Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-audit-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function memoryIn(folder: string): Memory {
  const place = { path: join(folder, 'memory'), keyFile: join(folder, 'key') };
  return openMemory(place, { known: undefined, acceptLost: false, randomHex });
}

const entryAt = (at: number): WriteEntry => ({
  type: 'write',
  at,
  run: 1,
  op: 'create',
  part: 'ch_news',
  rule: 'not-on-platform',
  outcome: 'acked',
  before: 'none',
  status: 201,
  says: 'opt_in',
  record: null,
  statedAt: at,
  approval: 'exempt',
  request: null,
  after: null,
  template: null,
});

function secondsOf(work: () => void): number {
  const from = performance.now();
  work();
  return (performance.now() - from) / 1000;
}

await inFolder((folder) => {
  const { log, close } = memoryIn(folder);
  const atOnce = 500;
  for (let from = 0; from < entries; from += atOnce) {
    log.append(
      Array.from({ length: atOnce }, (_, at) => ({
        entry: entryAt(Date.now()),
        person: `person${from + at}@example.com`,
        records: '96b3cd761142f9546ed3576b9cd5b598',
      })),
    );
  }
  log.checkpoint(Date.now());
  let found: ReturnType<typeof verifyLog> | undefined;
  const verifying = secondsOf(() => (found = verifyLog(log)));
  const text = Buffer.from('x'.repeat(180));
  const bare = secondsOf(() => {
    for (let at = 0; at < entries; at += 1) hash('sha256', text, 'buffer');
  });
  close();
  const bytes = statSync(join(folder, 'memory')).size / entries;
  console.log(`${entries} entries of as many people, faults: ${found?.faults.length}`);
  console.log(`  ${bytes.toFixed(0)} bytes an entry`);
  console.log(
    `  verified in ${verifying.toFixed(1)} s / ${bare.toFixed(1)} s of bare hashing = ${(verifying / bare).toFixed(1)}`,
  );
});

/** Loads everybody for the first time. Returns the time of the processor, in milliseconds. */
async function firstLoad(isAudited: boolean): Promise<number> {
  return inFolder(async (folder) => {
    const csv = join(folder, 'people.csv');
    const rows = Array.from({ length: people }, (_, at) => `${at},p${at}@example.com,yes,yes,,,`);
    writeFileSync(
      csv,
      ['id,email,ch_news,ch_product,deleted,unsubscribed,consent_at', ...rows, ''].join('\n'),
    );
    utimesSync(csv, 2, 2);
    const channels = ['ch_news', 'ch_product'].map((id) => ({ id, name: id }));
    const emulator = createEmulator({
      apiKey: 'key',
      channels,
      limits: ['*=999999999/1'],
      clock,
      random: seeded(1),
    });
    const snapshot = openSnapshot(join(folder, 'snapshot'));
    snapshot.fence();
    const memory = memoryIn(folder);
    const tools = { clock, random: () => 1 };
    const mirror = mirrorOf({
      send: async (request) => emulator.handle(request),
      snapshot,
      memory,
      ...tools,
      policy: {},
      contacts: csvSource({ type: 'csv', path: csv }, tools),
      templates: directorySource({ type: 'directory', path: folder }),
    });
    const audit = isAudited ? { log: memory.log, keepMs: 1e12 } : undefined;
    const never = new AbortController().signal;
    const options = { mode: 'full', writes: true, only: 'contacts', firstLoad: true } as const;
    const before = process.cpuUsage();
    const waits = { stop: never, abort: never, progress: () => undefined };
    const summary = await run({ ...mirror, audit }, { ...options, ...waits });
    const { user, system } = process.cpuUsage(before);
    if (summary.contacts.applied['create'] !== people) throw new Error(summary.reasons.join());
    memory.close();
    snapshot.close();
    return (user + system) / 1000;
  });
}

await firstLoad(true);
const times = { with: 0, without: 0 };
for (let turn = 0; turn < 3; turn += 1) {
  times.without += await firstLoad(false);
  times.with += await firstLoad(true);
}
console.log(`first loads of ${people} people in two channels, platform in the same process`);
const [mine, least] = [Math.round(times.with), Math.round(times.without)];
const share = (times.with / times.without).toFixed(2);
console.log(`  with the log ${mine} ms / without ${least} ms = ${share}`);
