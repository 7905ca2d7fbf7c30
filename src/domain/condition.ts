/** A condition on a CRM record. It is pure and parsed once for all records. */
export interface Condition {
  readonly text: string;
  /** The fields of a record that the condition reads. */
  readonly fields: readonly string[];
  /** Evaluates the condition on one record. Never throws. */
  judge(record: Readonly<Record<string, unknown>>): ConditionResult;
}

/**
 * The value that a condition returned; or, if known, the fields because of which it has none.
 * `longest` is set if a field's text is longer than that many characters, the most that is read.
 */
export type ConditionResult = { gives: unknown } | { failsOn: readonly string[]; longest?: number };
