/** The lines of the table of speeds, as the page of speeds has them. */

export interface Row {
  what: string;
  result: string;
  /** What it is compared with, in the same run. */
  beside?: string;
  ratio?: string;
}

/** Compares a value with `least`: what the work cannot do without, or what a peer takes. */
export function compared(
  what: string,
  value: number,
  { least, unit, peer }: { least: number; unit: string; peer: string },
): Row {
  return {
    what,
    result: `${Math.round(value)} ${unit}`,
    beside: `${peer}: ${Math.round(least)} ${unit}`,
    ratio: (value / least).toFixed(2),
  };
}

/** Returns the middle one of an odd number of values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Prints the table: the rows of each part as soon as they are measured. */
export async function printTable(parts: readonly (() => Promise<Row[]>)[]): Promise<void> {
  console.log('| What | Result | Beside | Ratio |\n| :-- | :-- | :-- | --: |');
  for (const measure of parts) {
    for (const { what, result, beside = '', ratio = '' } of await measure()) {
      console.log(`| ${what} | ${result} | ${beside} | ${ratio} |`);
    }
  }
}
