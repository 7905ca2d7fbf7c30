/**
 * Splits a plan into chunks, in its order: by phase, record type and key. Work on a whole plan goes
 * chunk by chunk, so that the process does other work in between.
 */
import type { Statements } from './prepared-statements.ts';

/** The position of a change in a plan. */
interface Place {
  phase: number;
  kind: string;
  key: string;
  /** Distinguishes the changes of one record and phase. */
  seq: number;
}

/** The changes behind one position, up to and including another. */
export interface Stretch extends Place {
  afterPhase: number;
  afterKind: string;
  afterKey: string;
  afterSeq: number;
}

/** Selects the changes of a chunk: a condition of SQL with the parameters of Stretch. */
export const inStretch = `
  (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
  and (phase, kind, key, seq) <= (@phase, @kind, @key, @seq)`;

/** The most changes in a chunk, and the most that are written at a time. */
export const most = 5_000;

const beginning: Place = { phase: -1, kind: '', key: '', seq: 0 };
const end: Place = { phase: Number.MAX_SAFE_INTEGER, kind: '', key: '', seq: 0 };

/** The chunk of the whole plan. */
export const whole: Stretch = { ...behind(beginning), ...end };

/**
 * Returns what yields the chunks of the changes that `clause` (from … where …) selects. An index
 * must have them in the order of the plan.
 */
export function stretchesOf(
  db: Statements,
  clause: string,
): (parameters: object) => Generator<Stretch> {
  const bound = db.prepare<Omit<Stretch, keyof Place>, Place>(
    `select phase, kind, key, seq ${clause}
       and (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
     order by phase, kind, key, seq limit 1 offset ${most - 1}`,
  );
  return function* chunks(parameters) {
    let after = beginning;
    for (;;) {
      const upTo = bound.get({ ...parameters, ...behind(after) });
      yield { ...behind(after), ...(upTo ?? end) };
      if (!upTo) return;
      after = upTo;
    }
  };
}

function behind({ phase, kind, key, seq }: Place): Omit<Stretch, keyof Place> {
  return { afterPhase: phase, afterKind: kind, afterKey: key, afterSeq: seq };
}
