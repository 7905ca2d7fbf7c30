import type { Kind } from '../kind/kind.ts';
import type { Expected } from '../model/errors.ts';
import type { Plan } from '../plan/plan.ts';
import type { Brake } from './brake.ts';
import type { Knowledge } from './decide.ts';
import type { MirrorPart, Run } from './mirror.ts';
import type { Tally } from './tally.ts';

/** Everything the steps of a run share, and what they have found out so far. */
export interface Course {
  run: Run;
  /** Those that take part: one that cannot be read or listed leaves. */
  parts: readonly MirrorPart[];
  tally: Tally;
  brake: Brake;
  known: Map<Kind, Knowledge>;
  /** Why the source's reading, or the run, is not what it should be. */
  reasons: string[];
  /** What is to be said besides, of a run that may be all it should be. */
  notes: string[];
  plan: Plan | undefined;
  failure: Expected | undefined;
}
