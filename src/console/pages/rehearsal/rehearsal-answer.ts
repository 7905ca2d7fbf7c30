/** Reads what `rehearse --json` has answered. */
import { z } from 'zod';
import type { CommandAnswer } from '../../../compose/separate-process.ts';
import { documentIn, heldPeople } from '../../jobs/job-document.ts';

const counts = z.record(z.string(), z.number());
const state = z.object({ status: z.string(), channels: z.record(z.string(), z.string()) });
const sizes = { before: z.number(), after: z.number() };

const rehearsal = z.object({
  status: z.enum(['done', 'held', 'rejected', 'failed', 'interrupted']),
  mode: z.string(),
  plan: z.string(),
  ms: z.number(),
  reads: z.number(),
  contacts: z.object({ changes: counts, applied: counts, held: heldPeople }),
  templates: z.object({ changes: counts, applied: counts, held: z.number() }),
  requests: z.object({ total: z.number(), byRoute: counts, rateLimited: z.number() }),
  limits: z.array(
    z.object({
      route: z.string(),
      limit: z.number(),
      windowMs: z.number(),
      from: z.enum(['given', 'seen', 'assumed']),
    }),
  ),
  deferred: counts,
  reasons: z.array(z.string()),
  groups: z.array(
    z.object({
      class: z.enum(['held', 'rejected', 'invalid', 'conflict']),
      kind: z.string(),
      cause: z.string(),
      count: z.number(),
      reason: z.string(),
      fix: z.string(),
    }),
  ),
  end: z.object({
    contacts: z.object(sizes),
    templates: z.object(sizes),
    channels: z.array(z.object({ id: z.string(), name: z.string().nullable(), ...sizes })),
  }),
  missing: z.object({
    before: z.number(),
    after: z.number(),
    waiting: z.number(),
    optedOutAfter: z.object({ readings: z.number(), ms: z.number() }).nullable(),
  }),
  peopleCount: z.number(),
  people: z.array(
    z.object({
      key: z.string(),
      before: state.nullable(),
      after: state.nullable(),
      changes: z.array(
        z.object({
          op: z.string(),
          parts: z.array(z.string()),
          held: z.boolean(),
          reason: z.string(),
        }),
      ),
    }),
  ),
  changedTemplates: z.array(
    z.object({ name: z.string(), before: z.boolean(), after: z.boolean() }),
  ),
});
/** A rehearsal that could be made. */
export type Rehearsal = z.output<typeof rehearsal>;

/** Returns the rehearsal, or the lines that say why there is none. */
export function rehearsalIn(answer: CommandAnswer): Rehearsal | string[] {
  return documentIn(answer, rehearsal);
}
