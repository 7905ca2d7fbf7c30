/** All that checkers know of a story, before anything has happened. */
import type { World } from '../world/world.ts';
import { createAbsences } from './absence.ts';
import { createApprovals } from './approvals.ts';
import { createAuditAccount } from './audit-checks.ts';
import { createCanaries } from './canary-checks.ts';
import type { Known } from './checker-state.ts';
import { createErasures } from './erasures.ts';
import { createMemories } from './expected-memory.ts';
import { createStanding } from './held-changes.ts';
import { createRejections } from './rejections.ts';
import { createUndone } from './undone.ts';
import { createUnmanaged } from './unmanaged.ts';
import { createSettlements } from './settlements.ts';
import { createStatements } from './stated-opt-outs.ts';

/** `unanswered`: what left and was not answered. */
export function createKnown(
  { story, clock, witness }: Pick<World, 'story' | 'clock' | 'witness'>,
  { unanswered, judge }: Pick<Known, 'unanswered' | 'judge'>,
): Known {
  const readBacks: Known['readBacks'] = new Map();
  const memories = createMemories(witness, story, readBacks);
  return {
    story,
    clock,
    witness,
    memories,
    absences: createAbsences(memories.idsOf),
    approvals: createApprovals(),
    standing: createStanding(),
    canaries: createCanaries({ story, clock, witness, judge }),
    rejections: createRejections(memories.everOf),
    letThrough: new Set(),
    erasures: createErasures(),
    audit: createAuditAccount(),
    statements: createStatements(),
    settlements: createSettlements(memories.everOf),
    undone: createUndone(),
    unmanaged: createUnmanaged(),
    unanswered,
    readBacks,
    refusals: new Set(),
    judge,
  };
}
