/**
 * Decodes the rows of a record type before its code receives them. The snapshot and the engine keep
 * the
 * body as text, which they store, hash and compare; a record type decides based on the decoded
 * value.
 */
import { checkedJson } from '../domain/stored-json.ts';
import type { z } from 'zod';
import type { DesiredRow, ObservedRow, RecordedRow, Rows } from '../domain/record.ts';
import type { States } from './record-type.ts';

/** A row or a change with the decoded value of its body. */
export type Decoded<Row extends { body: string }, Value> = Row & { readonly value: Value };

export interface RowDecoders<R extends Rows> {
  /** The row with the decoded value of its body. Throws as `decoder` does. */
  desired(row: DesiredRow): R['desired'];
  observed(row: ObservedRow): R['observed'];
  recorded(row: RecordedRow): R['recorded'];
}

/** Returns what adds a body's decoded value to a row. Throws Invalid for another form. */
export function decoder<Value>(schema: z.ZodType<Value>) {
  const body = checkedJson('the body of a record', schema);
  return <Row extends { body: string }>(row: Row): Decoded<Row, Value> => ({
    ...row,
    value: body.decode(row.body),
  });
}

/** Returns the states of one record with every row decoded. Throws what the decoders throw. */
export function decodedStates<R extends Rows>(states: States, decode: RowDecoders<R>): States<R> {
  const desired = (rows: readonly DesiredRow[]) => rows.map((row) => decode.desired(row));
  const observed = (rows: readonly ObservedRow[]) => rows.map((row) => decode.observed(row));
  const recorded = (row: RecordedRow | undefined) => row && decode.recorded(row);
  const next = (one: { desired: readonly DesiredRow[]; recorded: RecordedRow | undefined }) => ({
    desired: desired(one.desired),
    recorded: recorded(one.recorded),
  });
  return {
    ...states,
    ...next(states),
    observed: observed(states.observed),
    former: states.former.map(({ row, seen }) => ({
      row: decode.recorded(row),
      seen: observed(seen),
    })),
    successors: successorsOf(states.successors),
    renamed: states.renamed.map((one) => ({
      ...one,
      ...next(one),
      successors: successorsOf(one.successors),
      row: one.row && decode.observed(one.row),
    })),
  };

  function successorsOf(successors: States['successors']): States<R>['successors'] {
    return successors.map((one) => ({
      ...one,
      ...next(one),
      states: one.states && decodedStates(one.states, decode),
    }));
  }
}
