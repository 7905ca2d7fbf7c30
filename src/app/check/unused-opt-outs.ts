/** Points out columns that look like an opt-out, and that the configuration does not use. */
import { isNamedLikeOptOut } from '../../domain/opt-out-names.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { textOf } from '../../domain/values/record-field.ts';
import { isTextOfEach, saysOptOut } from '../init/flag-columns.ts';
import { fieldsOf, type Value } from '../init/sample/sample.ts';
import { cell } from '../../compose/output/visible-text.ts';
import { type Finding, note } from './finding.ts';

/** Collects such columns, record by record. */
interface UnusedOptOuts {
  add(record: Record<string, unknown>): void;
  names(): string[];
}

/** The maximum number of different columns that are looked at. */
const mostColumns = 10_000;
/** The maximum number of different values of a column that are distinguished, and their length. */
const mostValues = 100;
const longestValue = 200;
const others = '\0others';

/** Creates a collector; `used` are the fields that the configuration names. */
export function findUnusedOptOuts(used: readonly string[]): UnusedOptOuts {
  /** The values of each column; undefined: it is used, or a condition looks into its elements. */
  const columns = new Map<string, Map<string, Value> | undefined>();
  let records = 0;
  const isUsed = (path: string): boolean =>
    used.some((name) => path === name || path.startsWith(`${name}[`));
  const count = (values: Map<string, Value>, text: string | undefined): void => {
    if (text === undefined || text === '') return;
    const isOpen = values.size < mostValues && text.length <= longestValue;
    const key = isOpen || values.has(text) ? text : others;
    const known = values.get(key);
    if (known) known.records += 1;
    else values.set(key, { text, records: 1 });
  };
  return {
    add(record) {
      records += 1;
      for (const [path, value] of fieldsOf(record)) {
        if (!columns.has(path)) {
          if (columns.size >= mostColumns) continue;
          columns.set(path, isUsed(path) ? undefined : new Map());
        }
        const values = columns.get(path);
        if (!values) continue;
        for (const one of [value].flat()) count(values, textOf(one));
      }
    },
    names: () =>
      [...columns].flatMap(([path, found]) => {
        const values = [...(found?.values() ?? [])];
        const isNamed = found && isNamedLikeOptOut(path) && !isTextOfEach({ values }, records);
        return isNamed || values.some(saysOptOut) ? [path] : [];
      }),
  };
}

const mostShown = 5;

/** Warns of such columns: a person who opted out only there is opted in. */
export function tellUnused(names: readonly string[]): Finding[] {
  if (names.length === 0) return [];
  const some = names.slice(0, mostShown).map((name) => JSON.stringify(cell(name)));
  const rest = names.length > mostShown ? ` and ${withCommas(names.length - mostShown)} more` : '';
  const look = names.length === 1 ? 'looks like an opt-out' : 'look like opt-outs';
  const reason = `${some.join(', ')}${rest} ${look}, and the configuration does not use ${names.length === 1 ? 'it' : 'them'}: who opted out only there is opted in`;
  const fix = 'if it says who must not be mailed, name it in contacts.unsubscribed';
  return [note('contacts.unsubscribed', reason, fix)];
}
