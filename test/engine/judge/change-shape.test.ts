/** What the people that a run would delete have in common, compared with all people. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RecordedRow } from '../../../src/domain/record.ts';
import type { Shape } from '../../../src/domain/guards/guard-limits.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import { withoutYielding } from '../../../src/engine/decide/commit-plan.ts';
import { shapeOf } from '../../../src/engine/judge/guard-counts.ts';

interface Person {
  id: string;
  domain: string;
  leaves: boolean;
  ownership: RecordedRow['ownership'];
}

const row = { kind: 'contact', id: undefined, body: '{}', shown: undefined } as const;
const change = { kind: 'contact', op: 'delete', part: '', body: '{}', phase: 2 } as const;
const given = { kind: 'contact', body: '{}', presence: 'present' } as const;
const wish = { ...given, fingerprint: '', wants: true };

/** Each of them recorded, known by an id of the source, and some about to be deleted. */
function known(people: readonly Person[]): Snapshot {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  const { recorded, staging, ranges: spans } = snapshot;
  const named = people.map((one, nth) => ({ ...one, key: `p${nth}@${one.domain}` }));
  snapshot.transaction(() => {
    for (const { key, ownership } of named) {
      recorded.put({ ...row, key, ownership, desired: undefined, seenAt: 0 });
    }
    const rows = named.map(({ id, key }, nth) => {
      return { ...wish, id, key, alias: key, place: String(nth), invalid: undefined };
    });
    staging.addDesired(rows, 1);
    staging.sortKeyless({ kind: 'contact' });
    for (const span of spans.ofUnsorted('contact')) staging.sortRange(span);
    for (const span of spans.ofKeys('contact')) staging.noteStrange(span);
    for (const span of spans.ofStrangeIds('contact')) recorded.adoptOrigins({ ...span, since: 0 });
    for (const { key, leaves } of named) {
      if (leaves) staging.addPlanned({ ...change, key, target: undefined, guard: 'delete' });
    }
  });
  return snapshot;
}

function shape(people: readonly Person[]): Shape {
  const snapshot = known(people);
  const found = withoutYielding(shapeOf({ snapshot }, 'delete'));
  snapshot.close();
  return found;
}

/** The same, as it is defined. */
function defined(people: readonly Person[]): Shape {
  const ordered = people.toSorted((a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
  const lengths = ordered
    .map(({ leaves }) => (leaves ? '+' : ' '))
    .join('')
    .split(' ');
  const domains = new Set(people.filter(({ leaves }) => leaves).map(({ domain }) => domain));
  const owned = people.filter(({ ownership }) => ownership !== 'noted');
  const same = owned.filter(({ domain }) => domains.has(domain));
  return {
    domainShare: domains.size === 1 ? same.length / (owned.length || 1) : undefined,
    rows: lengths.map(({ length }) => length),
  };
}

const rows = ({ rows: all }: Shape): number[] =>
  [...new Set(all)].filter((length) => length > 0).toSorted((a, b) => a - b);

const id = fc.oneof(
  fc.integer({ min: 1, max: 1200 }).map(String),
  fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 1, maxLength: 4 }),
);
const person: fc.Arbitrary<Person> = fc.record({
  id,
  domain: fc.constantFrom('example.com', 'example.org'),
  leaves: fc.boolean(),
  ownership: fc.constantFrom('created', 'adopted', 'noted'),
});
const crowd = fc
  .uniqueArray(person, { selector: (one) => one.id, minLength: 1, maxLength: 60 })
  .filter((people) => people.some(({ leaves }) => leaves));

test('a look part by part finds what a look through everything would find', () => {
  fc.assert(
    fc.property(crowd, (people) => {
      const [found, expected] = [shape(people), defined(people)];
      expect(rows(found)).toEqual(rows(expected));
      expect(found.domainShare).toEqual(expected.domainShare);
    }),
  );
});

test('a row of keys continues from one length to the next, and from one part to the next', () => {
  const people = Array.from({ length: 1200 }, (_, at): Person => {
    const leaves = at >= 90 && at < 1100;
    return { id: String(at), domain: 'example.com', leaves, ownership: 'created' };
  });
  expect(rows(shape(people))).toEqual([1010]);
});
