/**
 * Keeps the records that are as they were recorded out of the staging tables. What is recorded is
 * read into memory once, each record of the reading is compared with it, and only the others are
 * staged. This decides only that nothing has changed; whatever is in doubt is staged.
 *
 * A recorded person is settled if all of this holds:
 *
 *   recorded      with an id of the platform, and the fingerprint of what is desired
 *   origin        one id, which no other key has or had
 *   stated        all that its form states, of this id, and nothing of another id or time
 *   open matters  none: no absence, problem, duplicate, hold, unfinished change, former contact
 *
 *   person    record of the reading                           the record is  the person then is
 *   unseen    its key and id, valid, present, same form       not staged     seen
 *   unseen    another with its key or its id                  staged         open
 *   seen      any with its key or its id, also the same       staged         open, and the record
 *                                                                            seen before is staged
 *   open      any                                             staged         open
 *   none      any                                             staged         none
 *
 * So a record that is not staged shares neither key nor id with one that is. All that it would add
 * to the results is to be counted as valid. The table `rest` has the keys that are recorded or have
 * stated something, except those of people who were seen. Queries about everybody who is recorded
 * ask about these alone. A person who is looked up by key or id is staged before, so that a
 * decision about a relative finds the same rows.
 */
import type { DesiredRow, Key, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { inRange, most, type RecordRange } from '../database/key-range.ts';
import { manyIn, type Statements } from '../database/prepared-statements.ts';
import { pairIndex } from './pair-index.ts';

const kind = 'contact';

/** If records have more forms than this, each is nearly one of its own. */
const mostForms = 10_000;
/** The most beginnings of places: "line " is one for a whole file. */
const mostPlaces = 60_000;

const [unseen, seen, open] = [0, 1, 2];

type Form = Pick<DesiredRow, 'body' | 'fingerprint' | 'wants' | 'presence'>;

const formBody = storedJson<{
  channels: Record<string, string | null>;
  outBy?: Record<string, string>;
  unread?: readonly string[];
}>('a staged record');

/** Returns what a form states, as the table `stated` has it; undefined if it may be news. */
function statementsIn(text: string): string | undefined {
  const { channels, outBy, unread } = formBody.decode(text);
  if (unread) return undefined;
  return Object.entries(channels)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([part, says]) => {
      const by = outBy?.[part];
      return `\n${part}\t${says ?? 'none'}\t${by === undefined ? '' : `:${by}`}`;
    })
    .join('');
}

/** The same of a row of the table, in SQL; '' for a channel that the mirror has no more. */
const statementOfRow = `iif(part in (select value from json_each(@parts)),
  char(10) || part || char(9) || says || char(9) || iif(stated_by is null, '', ':' || stated_by),
  '')`;

/**
 * What is known of each: the state, the number of the form with which it is recorded, the position
 * in the reading, and the place, which is a beginning with a number or the id.
 */
const [stateAt, formAt, seqAt, beginningAt, placeAt, width] = [0, 1, 2, 3, 4, 5];

/** The settled people by number, and what was read of them. */
function settledPeople(size: number, parts: readonly string[]) {
  const beginningNames: string[] = [];
  return {
    parts,
    size,
    unsettled: 0,
    /** The key and the id of each. */
    names: pairIndex(size),
    /** Side by side, because people are read in any order. */
    facts: new Uint32Array(size * width),
    /** Ids that are known under several keys, or about which something is open. */
    doubtfulIds: new Set<string>(),
    numbers: new Map<string, number>(),
    forms: new Map<number, Form>(),
    /** The number of each fingerprint that was read; -1 if no settled person has it. */
    numberRead: new Map<string, number>(),
    beginnings: new Map<string, number>(),
    beginningNames,
    valid: 0,
    wanted: 0,
  };
}

type Settled = ReturnType<typeof settledPeople>;

/** Where a place is its beginning with the id of the record. */
const isById = 0xffff_ffff;

/** Stores the place of a record in few bytes. Returns false if that is not possible. */
function storePlace(people: Settled, at: number, { place, id }: DesiredRow): boolean {
  const { beginnings, beginningNames, facts } = people;
  const end = place.slice(place.lastIndexOf(' ') + 1);
  const number = end === id ? isById : Number(end);
  if (number !== isById && (String(number) !== end || !(number >= 0 && number < isById)))
    return false;
  const name = place.slice(0, place.length - end.length);
  const beginning = beginnings.get(name) ?? beginnings.size;
  if (beginning >= mostPlaces) return false;
  if (beginning === beginningNames.length) {
    beginnings.set(name, beginning);
    beginningNames.push(name);
  }
  facts[at * width + beginningAt] = beginning;
  facts[at * width + placeAt] = number;
  return true;
}

function placeOf({ beginningNames, facts, names }: Settled, at: number): string {
  const number = facts[at * width + placeAt];
  const beginning = beginningNames[facts[at * width + beginningAt] ?? 0];
  return `${beginning}${number === isById ? names.second(at) : number}`;
}

/** Returns the number of the form of a row among those that are recorded; -1 if there is none. */
function numberOf(people: Settled, row: DesiredRow): number {
  const { numberRead, numbers, forms } = people;
  const { body, fingerprint, wants, presence } = row;
  const known = numberRead.get(fingerprint);
  if (known !== undefined || numberRead.size >= mostForms) return known ?? -1;
  const statements = statementsIn(body);
  const number = statements === undefined ? -1 : (numbers.get(fingerprint + statements) ?? -1);
  numberRead.set(fingerprint, number);
  if (number >= 0) forms.set(number, { body, fingerprint, wants, presence });
  return number;
}

/** Notes an unchanged record of a person as seen. Returns whether it is one. */
function see(people: Settled, at: number, { row, seq }: { row: DesiredRow; seq: number }): boolean {
  const { facts } = people;
  const isPlain = row.presence === 'present' && !row.invalid && row.alias === row.key;
  if (!isPlain || facts[at * width + stateAt] !== unseen) return false;
  if (facts[at * width + formAt] !== numberOf(people, row)) return false;
  if (!storePlace(people, at, row)) return false;
  facts[at * width + stateAt] = seen;
  facts[at * width + seqAt] = seq;
  people.valid += 1;
  if (row.wants) people.wanted += 1;
  return true;
}

/** Returns the record of a person who was seen, and its position in the reading. */
function recordSeen(people: Settled, at: number | undefined) {
  if (at === undefined || people.facts[at * width + stateAt] !== seen) return undefined;
  const form = people.forms.get(people.facts[at * width + formAt] ?? 0);
  if (!form) return undefined;
  const [key, id] = [people.names.first(at), people.names.second(at)];
  const name = { kind, key, alias: key, id, place: placeOf(people, at) } as const;
  const row: DesiredRow = { ...form, ...name, invalid: undefined };
  return { row, seq: people.facts[at * width + seqAt] ?? 0 };
}

/** `stage` stages a record under its position in the reading, if it is not there yet. */
export function unchangedIn(db: Statements, stage: (row: DesiredRow, seq: number) => void) {
  const readRecorded = recordedReaderIn(db);
  const matters = openMattersIn(db);
  const keysOfId = db.values<[RecordTypeName, id: string], Key>(
    'select key from origin where kind = ? and id = ?',
  );
  const sharedIds = db.values<RecordRange, string>(
    `select id from origin where ${inRange('origin', 'id')} group by id having count(*) > 1`,
  );
  const addRest = manyIn(db, 'insert or ignore into temp.rest', ['kind', 'key']);
  let people: Settled | undefined;

  const stageSeen = (at: number | undefined): void => {
    const found = people && recordSeen(people, at);
    if (found) stage(found.row, found.seq);
  };
  const openOne = (at: number | undefined): void => {
    if (!people || at === undefined) return;
    const found = recordSeen(people, at);
    people.facts[at * width + stateAt] = open;
    if (!found) return;
    stage(found.row, found.seq);
    people.valid -= 1;
    if (found.row.wants) people.wanted -= 1;
  };
  const openId = (id: string): void => {
    for (const key of keysOfId(kind, id)) openOne(people?.names.find(key));
  };
  return {
    clear(): void {
      people = undefined;
    },
    /** Begins to read the `size` recorded people. `parts`: the channels. */
    begin(size: number, parts: readonly string[]): void {
      db.exec('delete from temp.rest');
      people = settledPeople(size, parts);
    },
    /** Reads the recorded people of a range. Ends the comparison if too many are not settled. */
    remember(range: RecordRange): void {
      if (!people) return;
      const others = readRecorded(people, range);
      addRest(others.flatMap((key) => [kind, key]));
      for (const { key, id } of matters.inRangeOf(range)) {
        openOne(people.names.find(key));
        if (id !== null) people.doubtfulIds.add(id);
      }
      people.unsettled += others.length;
      if (people.unsettled > people.size / 2 + 100) people = undefined;
    },
    /** Finds, within a range of ids, those that are known under several keys. */
    rememberIds(range: RecordRange): void {
      if (!people) return;
      for (const id of sharedIds(range)) people.doubtfulIds.add(id);
    },
    endRemembering(): void {
      if (!people) return;
      for (const key of matters.keys({ kind })) openOne(people.names.find(key));
      for (const id of [...people.doubtfulIds, ...matters.ids({ kind })]) openId(id);
    },
    /**
     * Returns whether a record is unchanged, and notes it as seen. Otherwise the caller stages it;
     * all records with its key or its id are staged, too.
     */
    see(row: DesiredRow, seq: number): boolean {
      if (!people || row.kind !== kind) return false;
      const { names } = people;
      const at = row.key === undefined ? undefined : names.find(row.key);
      const isSame = at !== undefined && row.id !== '' && names.isSecond(at, row.id);
      if (isSame && see(people, at, { row, seq })) return true;
      openOne(at);
      if (!isSame && row.id !== '') openId(row.id);
      return false;
    },
    /** Ends the reading, in parts: adds everybody who was not seen to `rest`. */
    *addUnseen(): Generator<() => void> {
      if (!people) return;
      const { names, facts } = people;
      for (let from = 0; from < names.size(); from += most)
        yield () => {
          const others: string[] = [];
          for (let at = from; at < Math.min(from + most, names.size()); at += 1)
            if (facts[at * width + stateAt] !== seen) others.push(kind, names.first(at));
          addRest(others);
        };
    },
    counts: () => ({ valid: people?.valid ?? 0, wanted: people?.wanted ?? 0 }),
    /** Whether `rest` and the staging tables have all that needs a look. */
    isCompared: () => people !== undefined,
    stageKey: (key: Key): void => stageSeen(people?.names.find(key)),
    stageId(id: string): void {
      if (!people) return;
      for (const key of keysOfId(kind, id)) stageSeen(people.names.find(key));
    },
  };
}

/** Returns the function that adds the settled people of a range, and returns the other keys. */
function recordedReaderIn(db: Statements) {
  const recorded = db.all<RecordRange, { key: Key; desired: string | null }>(
    `select key, iif(id is null, null, desired) desired from recorded
     where ${inRange('recorded')}`,
  );
  const origins = db.all<RecordRange, { key: Key; id: string }>(
    `select key, id from origin indexed by origin_by_key where ${inRange('origin')}`,
  );
  const stated = db.all<
    RecordRange & { parts: readonly string[] },
    { key: Key; id: string; statement: string; gone: 0 | 1 }
  >(
    `select key, id, ${statementOfRow} statement, gone_at is not null gone from stated
     where ${inRange('stated')} order by key, id, part`,
  );
  return (to: Settled, range: RecordRange): Key[] => {
    const others: Key[] = [];
    const ids = Map.groupBy(origins(range), ({ key }) => key);
    const statements = Map.groupBy(stated({ ...range, parts: to.parts }), ({ key }) => key);
    for (const { key, desired } of recorded(range)) {
      const [own, ...more] = ids.get(key) ?? [];
      const rows = statements.get(key) ?? [];
      statements.delete(key);
      const isPlain = more.length === 0 && rows.every(({ id, gone }) => id === own?.id && !gone);
      const form = `${desired}${rows.map(({ statement }) => statement).join('')}`;
      if (isPlain && own && desired !== null && settle(to, { ...own, form })) continue;
      others.push(key);
    }
    return [...others, ...statements.keys()];
  };
}

/** Returns whether the person is settled, and added. */
function settle(to: Settled, { key, id, form }: { key: Key; id: string; form: string }): boolean {
  const { names, numbers } = to;
  const number = numbers.get(form) ?? numbers.size;
  const at = names.size();
  if (number >= mostForms || at >= to.size || !names.add(key, id)) return false;
  if (number === numbers.size) numbers.set(form, number);
  to.facts[at * width + formAt] = number;
  return true;
}

function openMattersIn(db: Statements) {
  const of = 'where kind = @kind';
  const tables = { absence: 'null', problem: 'crm', twin: 'id', renamed: 'null' };
  const all = Object.entries(tables).map(
    ([table, id]) => `select key, ${id} id from ${table} where ${inRange(table)}`,
  );
  return {
    /** Those of a range, with ids that are concerned, too. */
    inRangeOf: db.all<RecordRange, { key: Key; id: string | null }>(all.join(' union all ')),
    keys: db.values<{ kind: RecordTypeName }, Key>(
      `select key from hold ${of} and ended_at is null
       union select key from change ${of} and state = 'planned'
       union select key from change ${of} and state in ('sent', 'unknown')`,
    ),
    ids: db.values<{ kind: RecordTypeName }, string>(
      `select i.value from hold h, json_each(h.ids) i ${of} and ended_at is null`,
    ),
  };
}
