/** A condition on a CRM record, as the configuration states it. */

/** Pure, and parsed once: a million records are judged by the same parsed expression. */
export interface Condition {
  /** As it was written. */
  readonly text: string;
  /** The fields of a record it reads. */
  readonly fields: readonly string[];
  /** Never throws. */
  judge(record: Readonly<Record<string, unknown>>): ConditionResult;
}

/**
 * What came out of it, whatever that is; or the fields it could not be evaluated on, if known.
 * `longest`: their texts have more characters than this, which is as many as it reads.
 */
export type ConditionResult = { gives: unknown } | { failsOn: readonly string[]; longest?: number };
