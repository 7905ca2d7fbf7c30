/** The header row: which column is which field, and what to say when one is not there. */
import { Invalid } from '../../domain/errors.ts';
import { listed, nearest, quoted } from '../shared/field-suggestions.ts';

export interface Columns {
  width: number;
  /** The record of a row of this width. */
  valueOf(fields: readonly string[]): Record<string, unknown>;
}

/**
 * Every requested field must be exactly one column; throws Invalid otherwise. All other columns
 * are passed on too, for conditions may name them, save those without a name and those whose name
 * occurs twice: which one is meant could only be guessed.
 */
export function columnsOf(
  header: readonly string[],
  { name: file, fields }: { name: string; fields: readonly string[] },
): Columns {
  const names = header.map((name) => name.trim());
  if (names.some((name) => name.includes('\0'))) {
    throw new Invalid(`${file}: the header row holds a NUL byte; save the file as UTF-8 text`);
  }
  const places = Map.groupBy(names.keys(), (at) => names[at] ?? '');
  const missing = fields.filter((field) => !places.has(field));
  if (missing.length > 0) throw new Invalid(`${file}: ${missingMessage(missing, names)}`);
  for (const field of fields) {
    const columns = (places.get(field) ?? []).map((at) => at + 1);
    if (columns.length === 1) continue;
    throw new Invalid(
      `${file}: ${columns.length} columns are named ${quoted(field)} ` +
        `(columns ${columns.join(', ')}); rename or remove all but one`,
    );
  }
  const named = [...places].flatMap(([name, [at = 0, ...more]]): [string, number][] =>
    name === '' || more.length > 0 ? [] : [[name, at]],
  );
  return {
    width: header.length,
    valueOf: (row) => Object.fromEntries(named.map(([name, at]) => [name, row[at]])),
  };
}

/** Of a file without a header row the columns would be named by what the first person is. */
function missingMessage(missing: readonly string[], names: readonly string[]): string {
  const what = missing.length === 1 ? 'there is no column' : 'there are no columns';
  if (names.some((name) => name.includes('@'))) {
    return [
      `${what} ${missing.map(quoted).join(', ')}`,
      'the first row holds an address, so it looks like a person and is not repeated here',
      'export the file again with column names in line 1',
    ].join('; ');
  }
  const hints = missing.flatMap((name) => {
    const near = nearest(name, names);
    return near === undefined ? [] : [`did you mean ${quoted(near)} for ${quoted(name)}?`];
  });
  return [
    `${what} ${missing.map(quoted).join(', ')}`,
    `columns found: ${listed(names)}`,
    ...hints,
    'correct the configuration or the export',
  ].join('; ');
}
