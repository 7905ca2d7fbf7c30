/** A condition of the configuration, and its result. */

/** A condition on a CRM record. It is pure and parsed once for all records. */
export interface Condition {
  readonly text: string;
  /** The fields of a record that the condition reads. */
  readonly fields: readonly string[];
  /** Evaluates the condition on one record. Never throws. */
  judge(record: Readonly<Record<string, unknown>>): ConditionResult;
}

/**
 * The value that a condition returned, of any type; or, if known, the fields because of which it
 * could not be evaluated. `longest` is set if a field's text is too long to read; it is the maximum
 * number of characters that a condition reads.
 */
export type ConditionResult = { gives: unknown } | { failsOn: readonly string[]; longest?: number };
