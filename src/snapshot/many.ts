import type { Statements } from './statements.ts';

/** Rows of one statement: of more of them each takes no less time. */
const atOnce = 20;

/**
 * Takes in many rows, each with the values of these columns, in their order. One by one, most of
 * the time would go by between two statements. `into` is as `insert into temp.unsorted`.
 */
export function manyIn(
  { prepare }: Statements,
  into: string,
  columns: readonly string[],
): (rows: readonly (readonly unknown[])[]) => void {
  const row = `(${columns.map(() => '?').join(', ')})`;
  const statement = (rows: number) =>
    prepare(`${into} (${columns.join(', ')}) values ${Array(rows).fill(row).join(', ')}`);
  const [many, one] = [statement(atOnce), statement(1)];
  return (rows) => {
    const even = rows.length - (rows.length % atOnce);
    for (let at = 0; at < even; at += atOnce) many.run(...rows.slice(at, at + atOnce).flat());
    for (const values of rows.slice(even)) one.run(...values);
  };
}
