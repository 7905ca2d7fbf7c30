/**
 * Runs about single people at moments nobody chose, beside runs about everybody, while both sides
 * change and requests fail. A failure names its seed, and is shrunk: BESIDE_SEED repeats it,
 * BESIDE_SEEDS plays so many from there.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { complaintsOf, expectCalm, expectNone } from '../../support/engine/crash-aftermath.ts';
import { begin, bustle } from '../../support/engine/concurrency-scenario.ts';

const from = process.env['BESIDE_SEED'];
const first = Number(from ?? 20_260_101);
const seeds = Number(process.env['BESIDE_SEEDS'] ?? (from === undefined ? 60 : 1));

const property = fc.asyncProperty(bustle, async (day) => {
  const folder = mkdtempSync(join(tmpdir(), 'bustle-'));
  const played = begin(day, join(folder, 'snapshot.sqlite'));
  try {
    for (const [at, round] of day.rounds.entries()) {
      await played.play(round);
      expectNone(`round ${at + 1}`, complaintsOf(played));
    }
    await expectCalm(played);
  } finally {
    played.stage.close();
    rmSync(folder, { recursive: true });
  }
});

test(`${seeds} generated days of overlapping runs`, async () => {
  const failed: string[] = [];
  for (let seed = first; seed < first + seeds; seed += 1) {
    const how = { numRuns: 1, unbiased: true, interruptAfterTimeLimit: 20_000, seed };
    const details = await fc.check(property, how);
    if (!details.failed) continue;
    const error = details.errorInstance instanceof Error ? details.errorInstance.message : '';
    failed.push(`BESIDE_SEED=${seed}: ${JSON.stringify(details.counterexample)}\n${error}`);
  }
  expect(failed.join('\n\n')).toBe('');
});
