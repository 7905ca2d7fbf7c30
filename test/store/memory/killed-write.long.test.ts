/** A process that is killed as it writes: the memory opens, and every table is whole. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openMemory } from '../../../src/store/memory/memory.ts';
import { verifyLog } from '../../../src/store/memory/verify-log.ts';
import { scratchFolder } from '../../support/waiting.ts';

const source = (file: string): string =>
  JSON.stringify(new URL(`../../../src/store/memory/${file}`, import.meta.url).href);

/** What the process does in a loop, with `n` that grows. */
const writes = {
  'the do-not-contact list': `list.write([{ key: 'p' + n + '@example.com', ids: ['id-' + n],
    adds: [{ part: '*', cause: 'blocked', contact: null, after: null, by: n }], ends: [] }], n)`,
  'the audit log': `memory.log.append([{ entry: { type: 'erasure', at: n, by: 'eva' } }]);
    memory.log.checkpoint(n)`,
  'the requests': `memory.requests.append(Array.from({ length: 50 }, () => ({ at: n, run: null,
    route: 'contacts.enrol', status: 201, attempt: 1, ms: 1, size: null, rows: null, person: null,
    contact: null, content: Buffer.alloc(900, n) })));
    memory.requests.trim({ since: 0, bytes: 100_000 })`,
  'what forgets a person': `memory.log.append([{ person: 'p@example.com',
    entry: { type: 'erasure', at: n, by: 'eva' } }]);
    memory.forget({ key: 'p@example.com', contacts: ['c1'] }, { at: n, by: 'eva' })`,
};

test.each(Object.entries(writes))('%s', async (_, write) => {
  const folder = scratchFolder();
  const path = join(folder, 'acme.sqlite-memory');
  const place = { path, keyFile: `${path}-key` };
  const opening = 'known: undefined, acceptLost: false, randomHex: () => "a1".repeat(8)';
  const program = `import { openMemory } from ${source('memory.ts')};
    const memory = openMemory(${JSON.stringify(place)}, { ${opening} });
    const list = memory.list();
    for (let n = 1; ; n += 1) { ${write}; if (n === 3) console.log('writes'); }`;
  const args = ['--input-type=module-typescript', '-e', program];
  for (let time = 0; time < 3; time += 1) {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await setTimeout(time * 7);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const memory = openMemory(place, {
    known: undefined,
    acceptLost: false,
    randomHex: () => 'b2'.repeat(8),
  });
  expect(memory.id).toBe('a1'.repeat(8));
  expect(verifyLog(memory.log).faults).toEqual([]);
  memory.close();
  const db = new Database(path, { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  const counted = db.prepare<[], { kept: number; real: number }>(
    `select (select coalesce(sum(length(content) + 160), 0) from request) real,
       coalesce((select cast(value as integer) from meta where name = 'request-bytes'), 0) kept`,
  );
  const { kept, real } = counted.get()!;
  db.close();
  expect(kept).toBe(real);
});
