/** Counts what the columns of a reading mean, keeps a few people as examples, and shows a check. */
import type { Snapshot } from '../../store/snapshot.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { isPlain, formOf, isUnsubscribedOption } from '../../domain/unknown-words.ts';
import { wordOf } from '../../domain/values/record-field.ts';
import type {
  ColumnMeaning,
  ColumnValue,
  MappedColumn,
} from '../../records/contact/observe/column-meanings.ts';
import { numbers, type Section, type Text } from '../../views/sections.ts';
import { type Fate, fates, fateWords, peopleTable, wishWords } from '../init/preview.ts';
import type { DesiredRow } from '../../domain/record.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';

interface CountedValue {
  /** Undefined for a list or an object. */
  text: string | undefined;
  means: ColumnMeaning;
  isSerial: boolean;
  records: number;
}

interface ShownValue {
  value: string | null;
  records: number;
  means: ColumnMeaning;
}

/** Different values that are distinguished in one column. */
const mostValues = 1_000;
const mostCharacters = 60;
const mostShown = 10;

/** Creates a counter for these columns. Memory use does not grow with the number of records. */
export function countMappedColumns(columns: readonly MappedColumn[]) {
  const each = columns.map((column) => ({
    column,
    values: new Map<string, CountedValue>(),
    others: 0,
  }));
  return {
    /** Returns the values of the record, in the order of the columns. */
    add: (record: Record<string, unknown>): ColumnValue[] =>
      each.map((one) => {
        const value = one.column.read(record);
        const { text = '', means, isSerial = false } = value;
        // Usable ids, addresses and dates are counted by their form: nearly all of them differ.
        const differs = one.column.holds === 'own' || /^\d{1,4}[-./]\d/.test(text);
        const isForm = differs && means !== 'unknown' && value.text !== undefined;
        const short = (isForm ? formOf(text) : value.text)?.slice(0, mostCharacters);
        const name = `${means} ${short === undefined ? '' : wordOf(short)}`;
        const known = one.values.get(name);
        if (known) known.records += 1;
        else if (one.values.size >= mostValues) one.others += 1;
        else one.values.set(name, { text: short, means, isSerial, records: 1 });
        return value;
      }),
    /**
     * Returns the columns for JSON: unknown values first, then the most frequent ones. Those that
     * may be personal data are shown only `asTheyAre`. In `dateColumns`, a serial number of Excel
     * is a date.
     */
    document: (dateColumns: readonly string[], asTheyAre: boolean) =>
      each.map(({ column: { option, channel = null, fields, holds }, values, others }) => {
        const hasDates = fields.every((field) => dateColumns.includes(field));
        const sorted = [...values.values()]
          .map((one) => (one.isSerial && hasDates ? { ...one, means: 'yes' as const } : one))
          .toSorted((a, b) => b.records - a.records);
        const isUnknown = ({ means }: CountedValue) => means === 'unknown';
        const merged = new Map<string, ShownValue>();
        for (const one of [...sorted.filter(isUnknown), ...sorted.filter((v) => !isUnknown(v))]) {
          const { text, means, records } = one;
          const isWord = holds === 'words' && means !== 'unknown';
          const isPublic = holds !== 'own' && isPlain({ text, records });
          const isShown = text === undefined || isWord || asTheyAre || isPublic;
          const value = isShown ? (text ?? null) : formOf(text);
          const name = `${means} ${value === null ? '' : wordOf(value)}`;
          const known = merged.get(name);
          if (known) known.records += records;
          else merged.set(name, { value, records, means });
        }
        const all = [...merged.values()];
        const rest = all.slice(mostShown).reduce((sum, { records }) => sum + records, others);
        return { option, channel, fields, values: all.slice(0, mostShown), others: rest };
      }),
  };
}

type ColumnDocument = ReturnType<ReturnType<typeof countMappedColumns>['document']>;

/** What a value means, where its name does not say it. */
const words: Partial<Record<ColumnMeaning, string>> = {
  none: 'no opinion',
  id: 'an id',
  address: 'an address',
  time: 'a time',
};

/** Returns a section for each column, with its values and what they mean. */
function columnSections(columns: ColumnDocument): Section[] {
  return columns.map(({ option, channel, fields, values, others }) => {
    const spell = (value: string | null) => (value === '' ? '(empty)' : JSON.stringify(value));
    const rows = values.map(({ value, records, means }): Text[] => [
      withCommas(records),
      value === null ? 'a list or an object' : spell(value),
      { tone: means === 'unknown' ? 'bad' : 'quiet', text: words[means] ?? means },
    ]);
    if (others > 0) rows.push([withCommas(others), 'other values', '']);
    const named = fields.map((field) => JSON.stringify(field)).join(', ');
    return {
      title: `${option}${channel === null ? '' : ` of ${channel}`}: ${named}`,
      table: { columns: [numbers('Records'), 'Value', 'Means'], rows, isBare: true },
      none: '',
    };
  });
}

interface Candidate {
  row: DesiredRow;
  kind: Fate;
  /** The channels whose value has no known meaning. */
  unknown: readonly string[];
}

const mostPeople = 5;
const mostSkipped = 10;
const mostKept = 1_000;

/** Returns a keeper of the first people of each kind. */
export function keepPeople(columns: readonly MappedColumn[]) {
  const kept = new Map<Fate, Candidate[]>();
  const addressless: DesiredRow[] = [];
  return {
    add(row: DesiredRow, values: readonly ColumnValue[]): void {
      if (row.invalid?.noAddress === true) {
        if (addressless.length < mostKept) addressless.push(row);
        return;
      }
      let kind: Fate = 'mapped';
      if (row.invalid) kind = 'invalid';
      else if (row.presence === 'flagged') kind = 'gone';
      else if (row.presence === 'outside') kind = 'outside';
      else if (
        columns.some((one, nth) => isUnsubscribedOption(one.option) && values[nth]?.means === 'yes')
      )
        kind = 'unsubscribed';
      const list = kept.get(kind) ?? [];
      kept.set(kind, list);
      if (list.length >= mostPeople) return;
      const unknown = columns.flatMap(({ channel = [] }, nth) =>
        values[nth]?.means === 'unknown' ? channel : [],
      );
      list.push({ row, kind, unknown });
    },
    /** Returns the sample, once the reading is staged. */
    sample(snapshot: Snapshot, asTheyAre: boolean) {
      const { staging } = snapshot;
      const names = namesOf(snapshot, asTheyAre);
      const isKnown = ({ kind, id }: DesiredRow) =>
        id !== '' && staging.keysOf(kind, [id]).length > 0;
      const skipped = addressless.filter((row) => !isKnown(row)).map(({ place }) => place);
      // One of each kind comes first, then the others fill up in the order of the kinds.
      const lists = fates.map((kind) => kept.get(kind) ?? []);
      const byTurn = [
        ...lists.map((list) => list.slice(0, 1)),
        ...lists.map((list) => list.slice(1)),
      ];
      const chosen = new Set(byTurn.flat().slice(0, mostPeople));
      const people = lists
        .flat()
        .filter((one) => chosen.has(one))
        .map(({ row, kind, unknown }) => {
          const { key, alias, place } = row;
          // Only the whole reading shows that an id has several addresses.
          const staged = key === undefined ? [] : staging.desired('contact', key);
          const { invalid } = staged.find((one) => one.place === place) ?? row;
          const wishes = Object.entries(decodeContact.desired(row).value.channels);
          const channels = wishes.map(([channel, wish]) => {
            if (unknown.includes(channel)) return [channel, 'unknown'] as const;
            // Of an invalid record, only opt-outs count.
            const isNone = wish === null || (invalid && wish !== 'opt_out');
            return [channel, isNone ? 'none' : wishWords[wish]] as const;
          });
          const raw = asTheyAre && alias !== '' ? alias : null;
          return {
            /** The address or its hash; null if it may not be shown, because it is no address. */
            person: key === undefined ? raw : names({ kind: row.kind, key }),
            place,
            state: invalid ? ('invalid' as const) : kind,
            reason: invalid?.reason ?? null,
            channels: Object.fromEntries(channels),
          };
        });
      return { people, skipped: skipped.slice(0, mostSkipped) };
    },
  };
}

/** Returns the people, and the places of records that are skipped. */
function peopleSections({ people, skipped }: Sample, count: number): Section[] {
  const ids = [...new Set(people.flatMap(({ channels }) => Object.keys(channels)))];
  const rows = people.map(({ person, place, state, reason, channels }) => ({
    who: person ?? place,
    channels: ids.map((id) => (channels[id] === 'none' ? '–' : (channels[id] ?? ''))),
    notes: [fateWords(state, reason ?? undefined)],
  }));
  const rest = count > skipped.length ? ' …' : '';
  const places = `Without an address: ${withCommas(count)} (${skipped.join(', ')}${rest})`;
  return [
    { title: 'Some of the people', table: peopleTable(ids, rows) },
    { title: 'Skipped', lines: count === 0 ? [] : [places] },
  ];
}

type Counts = Record<
  'records' | 'desired' | 'skipped' | 'invalid' | 'duplicateIds' | 'sharedIds' | 'duplicateKeys',
  number
>;

/** What `check --json` prints. */
interface CheckDocument extends Sample {
  findings: readonly { what: string; level: 'ok' | 'note' | 'fail'; found: string }[];
  columns: ColumnDocument;
  contacts: Counts | null;
}
type Sample = ReturnType<ReturnType<typeof keepPeople>['sample']>;

/** Returns whether what a process of this program has printed is the document of a check. */
export function isCheck(value: unknown): value is CheckDocument {
  return typeof value === 'object' && value !== null && 'findings' in value;
}

const marks = {
  ok: 'ok  ',
  note: { tone: 'busy', text: 'NOTE' },
  fail: { tone: 'bad', text: 'FAIL' },
} as const;

/** Returns what was found and read. `isShort`: names what is in order, and folds what was read. */
export function checkSections(found: CheckDocument, isShort = false): Section[] {
  const { findings, columns, contacts, ...people } = found;
  const isShown = ({ level }: { level: string }): boolean => !isShort || level !== 'ok';
  const others = findings.filter((one) => !isShown(one)).map(({ what }) => what);
  const lines = findings
    .filter(isShown)
    .map(({ what, level, found: is }): Text => [marks[level], ` ${what}: ${is}`]);
  if (isShort) lines.push([{ tone: 'good', text: 'in order' }, ` ${others.join(', ')}`]);
  const counts = contacts
    ? [...peopleSections(people, contacts.skipped), countsSection(contacts)]
    : [];
  const read = [...columnSections(columns), ...counts];
  return [{ lines }, ...read.map((section) => ({ ...section, isFolded: isShort }))];
}

function countsSection(counts: Counts): Section {
  const { records, desired, skipped, invalid } = counts;
  const { duplicateIds: ids, sharedIds, duplicateKeys: keys } = counts;
  const addresses = keys === 1 ? '1 address has' : `${withCommas(keys)} addresses have`;
  const occur = `${counted(ids, 'id')} ${ids === 1 ? 'occurs' : 'occur'}`;
  const have = `${counted(sharedIds, 'id')} ${sharedIds === 1 ? 'has' : 'have'}`;
  return {
    title: 'What was read',
    lines: [
      `${counted(records, 'record')} · people ${withCommas(desired)} · skipped ${withCommas(skipped)} · invalid ${withCommas(invalid)}`,
      ...(keys > 0 ? [`${addresses} several records: the strictest statement counts`] : []),
      ...(ids > 0 ? [`${occur} more than once, with one address`] : []),
      ...(sharedIds > 0 ? [`${have} several addresses: those records are invalid`] : []),
    ],
  };
}
