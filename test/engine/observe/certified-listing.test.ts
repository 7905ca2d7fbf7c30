/** From when to when a listing was made, and what the ledger knew: opt-outs are dated by it. */
import { expect, onTestFinished, test } from 'vitest';
import type { ObservedRow } from '../../../src/domain/record.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { CircuitBreaker } from '../../../src/engine/context/circuit-breaker.ts';
import type { MirrorContacts } from '../../../src/engine/context/mirror-context.ts';
import type { RunContext } from '../../../src/engine/context/run-context.ts';
import type { PlatformListing } from '../../../src/engine/context/run-results.ts';
import { passOver, proveListing } from '../../../src/engine/observe/observe-platform.ts';

const NOON = Date.UTC(2026, 10, 20, 12);
const MINUTE = 60_000;
const SEQ = 7;

const ann: ObservedRow = {
  kind: 'contact',
  id: 'con_1',
  alias: 'ann@example.com',
  body: '{}',
  fingerprint: '1',
  createdAt: 1,
};

/**
 * Lists one contact, which a pass shows or omits. A page takes a minute, in which the list
 * learns something.
 */
async function listing(shows: readonly boolean[]): Promise<PlatformListing> {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  onTestFinished(() => snapshot.close());
  let pages = 0;
  const run = {
    snapshot,
    pageSizes: [10, 9],
    random: () => 0,
    stop: new AbortController().signal,
    clock: { now: () => NOON + pages * MINUTE, sleep: async () => undefined },
    doNotContact: { newest: () => SEQ + pages },
    progress: () => undefined,
  } as unknown as RunContext;
  const list = async () => {
    const rows = shows[pages] ? [ann] : [];
    pages += 1;
    return { rows, total: 1, date: NOON, others: [] };
  };
  const find = async () => ({ is: 'whole', rows: [] });
  const people = { channels: [], list, find } as unknown as MirrorContacts;
  const { staging } = snapshot;
  const first = await passOver(run, people);
  for (const sort of staging.sortings) sort();
  return proveListing(run, people, { first, breaker: {} as CircuitBreaker });
}

test.each([
  { what: 'a first pass that shows everybody', shows: [true], complete: true, minutes: 1 },
  { what: 'a second pass that does', shows: [false, true], complete: true, minutes: 2 },
  { what: 'two passes that do not', shows: [false, false], complete: false, minutes: 2 },
])('$what', async ({ shows, complete, minutes }) => {
  const endedAt = NOON + minutes * MINUTE;
  const found = { complete, startedAt: NOON, endedAt, knownEntries: SEQ };
  expect(await listing(shows)).toMatchObject(found);
});
