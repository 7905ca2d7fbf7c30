/**
 * Remembers which content of a template was sent as a test to which addresses, so that nobody gets
 * the same test twice. A claim is on disk before the test is sent: after a crash in between, the
 * test counts as sent.
 */
import { z } from 'zod';
import type { TestClaim } from '../../records/record-type.ts';
import { metaValue } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';

const name = 'template tests';

/** By key of the template: a fingerprint of what was tested last, and the addresses. */
const stored = z.record(z.string(), z.object({ content: z.string(), to: z.array(z.string()) }));

/** Claims a test. Returns false if it was claimed before. */
export function claimTest(snapshot: Snapshot, { key, content, to }: TestClaim): boolean {
  const tests = metaValue(snapshot.meta, name, stored) ?? {};
  const last = tests[key];
  const sent = last?.content === content ? last.to : [];
  if (sent.includes(to)) return false;
  write(snapshot, { ...tests, [key]: { content, to: [...sent, to] } });
  return true;
}

/** Gives a claim back, because the test was certainly not sent. */
export function releaseTest(snapshot: Snapshot, { key, content, to }: TestClaim): void {
  const tests = metaValue(snapshot.meta, name, stored) ?? {};
  const last = tests[key];
  if (last?.content !== content) return;
  write(snapshot, { ...tests, [key]: { content, to: last.to.filter((one) => one !== to) } });
}

function write({ meta, transaction }: Snapshot, tests: z.infer<typeof stored>): void {
  transaction(() => meta.set(name, JSON.stringify(tests)));
}
