/** Reads the document that a job has answered with. */
import { z } from 'zod';
import type { CommandAnswer } from '../../compose/separate-process.ts';

/** How many people await approval, by guard. */
export const heldPeople = z.object({
  delete: z.number(),
  opt_in: z.number(),
  opt_out: z.number(),
});

/** What stands there instead if a command has failed. */
const refused = z
  .object({ reasons: z.array(z.string()) })
  .transform(({ reasons }) => reasons)
  .or(z.object({ error: z.string() }).transform(({ error }) => error.split('\n')));

/** Returns the document, or the lines that say why it is another one, or none. */
export function documentIn<T>(
  { code, out, err }: CommandAnswer,
  schema: z.ZodType<T>,
): T | string[] {
  const document = parsed(out);
  const read = schema.safeParse(document);
  if (read.success) return read.data;
  const reasons = refused.safeParse(document).data ?? [];
  if (reasons.length > 0) return reasons;
  const lines = err.split('\n').map((line) => line.replace(/^crm-mirror: /, ''));
  const said = lines.filter((line) => line !== '');
  return said.length > 0 ? said : [`The command ended with the exit code ${code}.`];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
