/** Keeps a plan in a file without addresses: `plan --out` writes it, `sync --plan` reads it. */
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { codeOf, Invalid } from '../../domain/errors.ts';
import { readSmallFile } from '../../domain/values/config-file.ts';
import type { Summary } from '../../engine/report/run-summary.ts';

const hash = z.string().regex(/^[0-9a-f]{16}$/);

/** The fields that `sync --plan` reads. The counts in the file show people what they agree to. */
const planFile = z.object({
  version: z.literal(1),
  mirror: z.string(),
  /** The run that made the plan. No two plans share a run. */
  run: z.string().min(1),
  plan: hash,
  /** The hash under which to approve what is withheld, if it is another one. */
  heldAs: hash.optional(),
  mode: z.enum(['full', 'fast']),
  only: z.enum(['contacts', 'templates']).nullable(),
  madeAt: z.iso.datetime(),
});
export type PlanFile = z.infer<typeof planFile>;

/** Throws Invalid, before the run, if no plan can be written there without loss of another file. */
export function refuseOverwriting(file: string): void {
  const folder = dirname(resolve(file));
  if (!existsSync(folder)) {
    throw new Invalid(`${file}: there is no folder ${folder}`, {
      fix: 'make it, or name another file',
    });
  }
  if (!existsSync(file)) return;
  try {
    if (planFile.safeParse(jsonIn(file)).success) return;
  } catch {
    // A file that cannot be read is no plan.
  }
  throw new Invalid(`${file}: it is there and is no plan, and nothing else is overwritten`, {
    fix: 'name another, or remove it',
  });
}

/** `at`: milliseconds since the epoch. */
export function writePlan(file: string, summary: Summary, at: number): void {
  const { mirror, run, plan, heldAs, mode, only, contacts, templates } = summary;
  const madeAt = new Date(at).toISOString();
  const made = { run, plan, heldAs, mode, only, madeAt };
  const document = { version: 1, mirror, ...made, contacts, templates };
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`, { mode: 0o600 });
}

/** Throws Invalid if the file contains no plan that this version can read. */
export function readPlan(file: string): PlanFile {
  const read = planFile.safeParse(jsonIn(file));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const where = issue?.path.join('.') || 'the document';
  throw new Invalid(
    `${file}: ${where} is not as \`plan --out\` of this version writes it (${issue?.message})`,
    { fix: 'plan again' },
  );
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readSmallFile(file).toString('utf8'));
  } catch (error) {
    const code = codeOf(error) || String(error);
    let why = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`;
    if (error instanceof SyntaxError) why = 'it is not JSON';
    throw new Invalid(`${file}: ${why}`, {
      fix: 'name a file that `crm-mirror plan --out` has written',
    });
  }
}
