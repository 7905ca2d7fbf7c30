import type { RecordType } from '../../records/record-type.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import { Busy, type Expected, Interrupted, isExpected, Rejected } from '../../domain/errors.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { HoldReason } from '../report/guard-rules.ts';
import type { Plan } from '../report/change-plan.ts';
import type { Approval } from '../../snapshot/tables/awaiting-approval.ts';
import type { Unread } from '../../snapshot/tables/retry-later.ts';
import type { PersonLock } from './person-locks.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { type RecordTypeKnowledge, unknown } from './source-knowledge.ts';
import type { RunContext } from './run-context.ts';
import type { MirrorPart } from './mirror-context.ts';
import type { RunTally } from './run-tally.ts';

/** Everything the steps of a run share, and what they have found out so far. */
export interface RunState {
  run: RunContext;
  /** Those that take part: one that cannot be read or listed leaves. */
  parts: readonly MirrorPart[];
  /** Those that it began with. */
  begun: readonly MirrorPart[];
  /** From where the changes of their sources may be read, where that is known. */
  since: ReadonlyMap<RecordType, string>;
  /** Somebody was taken when it began: what is heard of her then may be older than what is read. */
  isOvertakenEarly: boolean;
  /** How many runs about everybody had ended when it began. */
  endedBefore: number;
  /** The CRM told of a record: it is about whoever stands under that. */
  isEvent: boolean;
  /** Whom it is about, where that is one person. */
  taken: PersonLock | undefined;
  tally: RunTally;
  breaker: CircuitBreaker;
  known: Map<RecordType, RecordTypeKnowledge>;
  /** What is known of those whom a reading of changes does not name, by kind. */
  unread: Map<RecordTypeName, Unread>;
  /** Why the source's reading, or the run, is not what it should be. */
  reasons: string[];
  /** Why the CRM cannot be told who left: it stops nothing, and is not kept quiet. */
  stuck: string | undefined;
  /** What is to be said besides, of a run that may be all it should be. */
  notes: string[];
  plan: Plan | undefined;
  /** Of that plan. */
  forecast: Forecast | undefined;
  /** When to ask the source again; by the clock of the run, in milliseconds since the epoch. */
  sliceEndsAt: number;
  failure: Expected | undefined;
  /** In force when the run began. */
  approvals: Approval[];
  /** Classes that a guard holds, from the first time on. */
  held: Map<GuardClass, HoldReason>;
  /** People whose stated opt-outs stay held, and of whom this run did not read. */
  unplanned: number;
  /** How many records a class is about, once that was counted. */
  population: Partial<Record<GuardClass, number>>;
  /** How often the guards were asked. */
  rounds: number;
}

export function knowledgeOf({ known }: RunState, type: RecordType): RecordTypeKnowledge {
  return known.get(type) ?? unknown;
}

/** Takes a kind out of the run; a refused key, an interruption and the last kind end it. */
export function excludePart(context: RunState, part: MirrorPart, error: unknown): undefined {
  const isLast = context.parts.length === 1;
  const endsAll = error instanceof Interrupted || error instanceof Busy || isRefusedKey(error);
  if (isLast || endsAll || !isExpected(error)) throw error;
  context.reasons.push(`${part.type.name}s are left out: ${error.message}`);
  context.parts = context.parts.filter((other) => other !== part);
}

function isRefusedKey(error: unknown): boolean {
  return error instanceof Rejected && error.status === 401;
}
