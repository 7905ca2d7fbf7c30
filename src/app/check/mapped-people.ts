/** Keeps a few people of each kind while the source is read, and shows what they become. */
import type { DesiredRow } from '../../domain/record.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import { table } from '../../compose/output/table.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { withCommas } from '../../domain/values/counted.ts';

/** The kinds of people, in the order in which one of each is shown. */
const kinds = ['mapped', 'invalid', 'gone', 'unsubscribed', 'outside'] as const;
type PersonKind = (typeof kinds)[number];

interface Candidate {
  row: DesiredRow;
  kind: PersonKind;
  /** The channels whose value has no known meaning. */
  unknown: readonly string[];
}

/** What one person becomes, for people and for JSON. */
interface MappedPerson {
  /** The address or its hash; null if it may not be shown, because it is no address. */
  person: string | null;
  place: string;
  state: PersonKind;
  reason: string | null;
  channels: Record<string, 'in' | 'out' | 'none' | 'unknown'>;
}

/** The people that are shown, and the places of records that are skipped. */
interface PeopleSample {
  people: MappedPerson[];
  skipped: string[];
}

const mostPeople = 5;
const mostSkipped = 10;

/** Returns a keeper of the first people of each kind. */
export function keepPeople() {
  const kept = new Map<PersonKind, Candidate[]>();
  const addressless: DesiredRow[] = [];
  return {
    /** `unknown` are the channels whose value has no known meaning. */
    add(
      row: DesiredRow,
      { isUnsubscribed, unknown }: { isUnsubscribed: boolean; unknown: readonly string[] },
    ): void {
      if (row.invalid?.noAddress === true) {
        if (addressless.length < mostKept) addressless.push(row);
        return;
      }
      let kind: PersonKind = isUnsubscribed ? 'unsubscribed' : 'mapped';
      if (row.invalid) kind = 'invalid';
      else if (row.presence === 'flagged') kind = 'gone';
      else if (row.presence === 'outside') kind = 'outside';
      const list = kept.get(kind) ?? [];
      kept.set(kind, list);
      if (list.length < mostPeople) list.push({ row, kind, unknown });
    },
    /** Returns the sample, once the reading is staged. `names` names people who may be shown. */
    sample(snapshot: Snapshot, names: Names, asTheyAre: boolean): PeopleSample {
      const isKnown = ({ kind, id }: DesiredRow) =>
        id !== '' && snapshot.staging.keysOf(kind, [id]).length > 0;
      const skipped = addressless.filter((row) => !isKnown(row)).map(({ place }) => place);
      // One of each kind comes first, then the others fill up in the order of the kinds.
      const lists = kinds.map((kind) => kept.get(kind) ?? []);
      const firsts = lists.flatMap(([one]) => one ?? []);
      const rest = lists.flatMap(([, ...others]) => others);
      const chosen = new Set([...firsts, ...rest].slice(0, mostPeople));
      const people = lists
        .flat()
        .filter((one) => chosen.has(one))
        .map((one) => {
          const { key, alias, kind } = one.row;
          const person = key === undefined ? undefined : names({ kind, key });
          const raw = asTheyAre && alias !== '' ? alias : null;
          return { person: person ?? raw, ...becomes(one, snapshot) };
        });
      return { people, skipped: skipped.slice(0, mostSkipped) };
    },
  };
}

/** The maximum number of records without an address that are kept. */
const mostKept = 1_000;

const said = { opt_in: 'in', opt_out: 'out' } as const;

function becomes(
  { row, kind, unknown }: Candidate,
  { staging }: Snapshot,
): Omit<MappedPerson, 'person'> {
  const { key, place } = row;
  // Only the whole reading shows that an id has several addresses.
  const rows = key === undefined ? [] : staging.desired('contact', key);
  const { invalid } = rows.find((one) => one.place === place) ?? row;
  const wishes = decodeContact.desired(row).value.channels;
  const channels = Object.entries(wishes).map(([channel, wish]) => {
    if (unknown.includes(channel)) return [channel, 'unknown'] as const;
    // Of an invalid record, only opt-outs count.
    const isNone = wish === null || (invalid && wish !== 'opt_out');
    return [channel, isNone ? 'none' : said[wish]] as const;
  });
  return {
    place,
    state: invalid ? 'invalid' : kind,
    reason: invalid?.reason ?? null,
    channels: Object.fromEntries(channels),
  };
}

const states: Record<PersonKind, string> = {
  mapped: '',
  invalid: 'invalid',
  gone: 'gone: the CRM says that this person is deleted',
  unsubscribed: 'unsubscribed from everything',
  outside: 'out of scope (contacts.include)',
};

/** Renders the people, then the places of records that are skipped. */
export function renderPeople({ people, skipped }: PeopleSample, count: number): Line[] {
  const rows = people.map(({ person, place, state, reason, channels }) => [
    person ?? place,
    Object.entries(channels)
      .map(([channel, is]) => `${channel} ${is === 'none' ? '–' : is}`)
      .join(', '),
    reason === null ? states[state] : `invalid: ${reason}`,
  ]);
  const lines = table(rows, { indent: 2 });
  const shown = people.length === 0 ? [] : ['', styled('bold', 'Some of the people:'), ...lines];
  if (count === 0) return shown;
  const rest = count > skipped.length ? ' …' : '';
  const places = `${skipped.join(', ')}${rest}`;
  const what = `Skipped, without an address: ${withCommas(count)} (${places})`;
  return [...shown, '', what];
}
