/** Reads what `undo --json` has answered: a plan, or what was sent. */
import { z } from 'zod';
import { documentIn, heldPeople } from '../../jobs/job-document.ts';
import type { CommandAnswer } from '../../../compose/separate-process.ts';

const counts = z.record(z.string(), z.number());

const summary = z.object({
  run: z.string(),
  status: z.enum(['done', 'held', 'rejected', 'failed', 'interrupted']),
  plan: z.string(),
  contacts: z.object({ applied: counts, held: heldPeople, refused: z.number() }),
  templates: z.object({ applied: counts, held: z.number(), refused: z.number() }),
  deferred: counts,
  reasons: z.array(z.string()),
});

const plan = summary.extend({
  undoes: z.string(),
  planned: z.array(
    z.object({
      kind: z.enum(['contact', 'template']),
      op: z.string(),
      held: z.boolean(),
      count: z.number(),
      records: z.array(
        z.object({ key: z.string(), channels: z.array(z.string()), reason: z.string() }),
      ),
    }),
  ),
  cannot: z.array(
    z.object({
      kind: z.enum(['contact', 'template']),
      op: z.string(),
      reason: z.string(),
      count: z.number(),
      records: z.array(z.object({ key: z.string(), channel: z.string() })),
    }),
  ),
});
/** What would be sent to undo a run, and what cannot be undone. */
export type UndoPlan = z.output<typeof plan>;
/** What came of an undo. */
export type Undone = z.output<typeof summary>;

/** Returns the plan, or the lines that say why there is none. */
export function planIn(answer: CommandAnswer): UndoPlan | string[] {
  const found = documentIn(answer, plan);
  if (Array.isArray(found)) return found;
  return found.status === 'failed' || found.status === 'interrupted' ? found.reasons : found;
}

/** Returns what came of it, or the lines that say why nothing did. */
export function undoneIn(answer: CommandAnswer): Undone | string[] {
  const found = documentIn(answer, summary);
  return Array.isArray(found) || found.run !== '' ? found : linesOf(found);
}

function linesOf({ reasons }: Undone): string[] {
  return reasons.length > 0 ? reasons : ['nothing was sent'];
}
