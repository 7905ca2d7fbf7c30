import type { Statements } from './prepared-statements.ts';

/** Rows of one statement: of more of them each takes no less time. */
const atOnce = 20;

/**
 * Takes in many rows: the values of these columns, in their order, of one row after another. Row by
 * row, most of the time would go by between two statements. `into` is as
 * `insert into temp.unsorted`.
 */
export function manyIn(
  { prepare }: Statements,
  into: string,
  columns: readonly string[],
): (values: readonly unknown[]) => void {
  const row = `(${columns.map(() => '?').join(', ')})`;
  const statement = (rows: number) =>
    prepare(`${into} (${columns.join(', ')}) values ${Array(rows).fill(row).join(', ')}`);
  const [many, one] = [statement(atOnce), statement(1)];
  const ofOne = columns.length;
  const ofMany = ofOne * atOnce;
  return (values) => {
    const even = values.length - (values.length % ofMany);
    for (let at = 0; at < even; at += ofMany) many.run(...values.slice(at, at + ofMany));
    for (let at = even; at < values.length; at += ofOne) {
      one.run(...values.slice(at, at + ofOne));
    }
  };
}
