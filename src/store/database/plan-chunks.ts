/**
 * Splits a plan into chunks in plan order: by phase, record type and key. Work on a whole plan runs
 * chunk by chunk, so that the process can do other work in between.
 */
import type { Statements } from './prepared-statements.ts';

/** The position of a change in a plan. */
export interface Place {
  phase: number;
  kind: string;
  key: string;
  /** Distinguishes the changes of one record and phase. */
  seq: number;
}

/** The changes after one position, up to and including another. */
export interface Stretch extends Place {
  afterPhase: number;
  afterKind: string;
  afterKey: string;
  afterSeq: number;
}

/** Selects the changes of a chunk: an SQL condition with the parameters of Stretch. */
export const inStretch = `
  (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
  and (phase, kind, key, seq) <= (@phase, @kind, @key, @seq)`;

/** The maximum number of changes in a chunk, and of changes written at a time. */
export const most = 5_000;

const beginning: Place = { phase: -1, kind: '', key: '', seq: 0 };
const end: Place = { phase: Number.MAX_SAFE_INTEGER, kind: '', key: '', seq: 0 };

/** The chunk that covers the whole plan. */
export const whole: Stretch = { ...behind(beginning), ...end };

/**
 * Returns a function that yields the chunks of the changes that `clause` (from … where …) selects.
 * An index must contain them in plan order. `from` is the place after which the first one begins.
 */
export function stretchesOf(
  db: Statements,
  clause: string,
): (parameters: object, from?: Place) => Generator<Stretch> {
  const bound = db.one<Omit<Stretch, keyof Place>, Place>(
    `select phase, kind, key, seq ${clause}
       and (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
     order by phase, kind, key, seq limit 1 offset ${most - 1}`,
  );
  return function* chunks(parameters, from = beginning) {
    let after = from;
    for (;;) {
      const upTo = bound({ ...parameters, ...behind(after) });
      yield { ...behind(after), ...(upTo ?? end) };
      if (!upTo) return;
      after = upTo;
    }
  };
}

function behind({ phase, kind, key, seq }: Place): Omit<Stretch, keyof Place> {
  return { afterPhase: phase, afterKind: kind, afterKey: key, afterSeq: seq };
}
