/**
 * Parts of a plan, in its order: by phase, kind and key. What is done to a whole plan is done
 * stretch by stretch, so that nothing in the process stands still meanwhile.
 */
import type { Statements } from './prepared-statements.ts';

interface Place {
  phase: number;
  kind: string;
  key: string;
  /** Tells those of one record and phase apart. */
  seq: number;
}

/** What comes after one place, up to and with another. */
export interface Stretch extends Place {
  afterPhase: number;
  afterKind: string;
  afterKey: string;
  afterSeq: number;
}

/** Of a statement with the parameters of a stretch: that a change is in it. */
export const inStretch = `
  (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
  and (phase, kind, key, seq) <= (@phase, @kind, @key, @seq)`;

/** No more changes are in a stretch, and no more are written at a time. */
export const most = 5_000;

const beginning: Place = { phase: -1, kind: '', key: '', seq: 0 };
const end: Place = { phase: Number.MAX_SAFE_INTEGER, kind: '', key: '', seq: 0 };

export const whole: Stretch = { ...behind(beginning), ...end };

/** Of what this clause names, with these parameters; an index has to have it in that order. */
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
