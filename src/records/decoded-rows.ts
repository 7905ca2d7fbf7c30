/**
 * Decodes the bodies of rows and changes. The snapshot and the engine keep the body as text, which
 * they store, hash and compare; contacts and templates decide based on the decoded value.
 */
import { checkedJson } from '../domain/stored-json.ts';
import type { z } from 'zod';

/** A row or a change with the decoded value of its body. */
export type Decoded<Row extends { body: string }, Value> = Row & { readonly value: Value };

/** Returns what adds a body's decoded value to a row. Throws Invalid for another form. */
export function decoder<Value>(schema: z.ZodType<Value>) {
  const body = checkedJson('the body of a record', schema);
  return <Row extends { body: string }>(row: Row): Decoded<Row, Value> => ({
    ...row,
    value: body.decode(row.body),
  });
}
