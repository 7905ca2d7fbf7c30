/** Points out columns that are named like an opt-out, and that the configuration does not use. */
import { renderProblem } from '../../domain/errors.ts';
import { isAboutOptOut, isNamedLikeOptOut } from '../../domain/opt-out-names.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { textOf, wordOf } from '../../domain/values/record-field.ts';
import { isTextOfEach } from '../init/flag-columns.ts';
import type { Value } from '../init/sample/sample.ts';
import { cell } from '../output/visible-text.ts';
import type { Finding } from './finding.ts';

/** Collects such columns, record by record. */
export interface UnusedOptOuts {
  add(record: Record<string, unknown>): void;
  names(): string[];
}

/** The maximum number of different columns that are looked at. */
const mostColumns = 10_000;
/** The maximum number of different values of a column that are distinguished. */
const mostValues = 100;
const others = '\0others';
/** How deep nested fields are looked for. */
const mostDeep = 3;

/** Creates a collector; `used` are the fields that the configuration names. */
export function findUnusedOptOuts(used: readonly string[]): UnusedOptOuts {
  const seen = new Set(used);
  const found = new Map<string, Map<string, Value>>();
  let records = 0;
  const lists = new Map<string, Set<string>>();
  const noteList = (path: string, elements: readonly unknown[]): void => {
    const known = lists.get(path) ?? new Set();
    lists.set(path, known);
    for (const text of elements.map(textOf)) {
      if (text === undefined || known.has(text) || known.size >= mostValues) continue;
      known.add(text);
      if (isAboutOptOut(text)) found.set(path, new Map());
    }
  };
  const note = (path: string, value: unknown): void => {
    const values = found.get(path);
    if (Array.isArray(value) && !used.includes(path) && !values) noteList(path, value);
    const text = textOf(value);
    if (!values || text === undefined || text === '') return;
    const word = values.size < mostValues ? wordOf(text) : others;
    const known = values.get(word);
    if (known) known.records += 1;
    else values.set(word, { text, records: 1 });
  };
  const add = (record: object, before: string, deep: number): void => {
    for (const [name, value] of Object.entries(record)) {
      const path = before + name;
      if (isRecord(value) && deep < mostDeep) add(value, `${path}.`, deep + 1);
      else if (!seen.has(path) && seen.size < mostColumns) {
        seen.add(path);
        if (isNamedLikeOptOut(name)) found.set(path, new Map());
      }
      note(path, value);
    }
  };
  return {
    add(record) {
      records += 1;
      add(record, '', 1);
    },
    names: () =>
      [...found].flatMap(([path, values]) =>
        isTextOfEach({ values: [...values.values()] }, records) ? [] : [path],
      ),
  };
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const mostShown = 5;

/** Warns of such columns: a person who opted out only there is opted in. */
export function tellUnused(names: readonly string[]): Finding[] {
  if (names.length === 0) return [];
  const some = names.slice(0, mostShown).map((name) => JSON.stringify(cell(name)));
  const rest = names.length > mostShown ? ` and ${withCommas(names.length - mostShown)} more` : '';
  const look = names.length === 1 ? 'looks like an opt-out' : 'look like opt-outs';
  const found = renderProblem({
    reason: `${some.join(', ')}${rest} ${look}, and the configuration does not use ${names.length === 1 ? 'it' : 'them'}: who opted out only there is opted in`,
    fix: 'if it says who must not be mailed, name it in contacts.unsubscribed',
  });
  return [{ what: 'contacts.unsubscribed', level: 'note', found, invalidInput: false }];
}
