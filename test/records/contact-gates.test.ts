/** Every gate of consent: one person whom it concerns, and what becomes of them. */
import { describe, expect, test } from 'vitest';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import { decidePerson, explainPerson } from '../../src/records/contact/consent/decide.ts';
import type { PersonRules } from '../../src/records/contact/consent/person-facts.ts';
import { gates } from '../../src/records/contact/consent/gates.ts';
import { rules as table } from '../../src/records/contact/consent/rules.ts';
import type { Membership } from '../../src/records/contact/observe/contact-state.ts';
import {
  ANN,
  remembered,
  shown,
  wish,
  NEWS,
  NOON,
  PRODUCT,
  states,
  decoded,
  type States,
  entry,
} from '../support/records/record-stage.ts';

const rules: PersonRules = {
  channels: [NEWS],
  replaces: new Map(),
  protects: new Set(),
  policy: { absent: 'opt_out', resubscribe: 'never', missing: 'respect', optIns: 'on' },
  absence: { deletes: 'owned', deleteAfterMs: 0, absentReadings: 1, absentForMs: 0 },
};
const replacing = { ...rules, replaces: new Map([[NEWS, PRODUCT]]) };
const keeping = { ...rules, absence: { ...rules.absence, deletes: 'off' as const } };
const recreating = { ...rules, policy: { ...rules.policy, missing: 'recreate' as const } };
const yes = wish({ newsletter: 'yes' });
const no = wish({ newsletter: 'no' });
const inNews = shown({ news: 'opt_in' });
const stated: Membership = {
  is: 'opt_out',
  by: 'us',
  cause: 'stated',
  stated: ['9'],
  bound: ['1'],
};

function recorded(is: Membership, channel = NEWS): RecordedRow {
  const contact = { id: 'con_1', left: false, channels: {} };
  const body = { contacts: [contact], defaults: [], channels: { [channel]: is } };
  return { ...remembered({ id: 'con_1' }), body: canonicalJson(body) };
}

/** Ann's CRM record has the address new@example.com by now; the contact there is subscribed. */
function successor(newsletter: string) {
  const desired = [wish({ newsletter, email: 'new@example.com' })];
  return { desired, recorded: remembered({ news: 'in' }), vanished: false };
}

/** Ann's contact has the address renamed@example.com on the platform by now. */
function renamed(newsletter: string) {
  const known = { recorded: undefined, successors: [], origins: [] };
  const row = shown({ id: 'con_8', news: 'opt_in' });
  return [{ id: 'con_8', row, desired: [wish({ id: '8', newsletter })], ...known }];
}

const examples: Record<string, [Partial<States>, PersonRules?]> = {
  'channel-lost': [{ desired: [yes], lost: new Set([NEWS]) }],
  'unmanaged-out': [
    { desired: [wish({ archived: 'yes' })], observed: [inNews], unmanagedOut: [NEWS] },
  ],
  protected: [{ desired: [yes] }, { ...rules, protects: new Set([ANN]) }],
  'opt-ins-off': [{ desired: [yes] }, { ...rules, policy: { ...rules.policy, optIns: 'off' } }],
  'not-chosen': [{ desired: [yes], unchosen: true }],
  'left-former-address': [
    { desired: [yes], former: [{ row: remembered({ news: 'platform' }), seen: [] }] },
  ],
  'our-opt-out-former-address': [{ desired: [yes], former: [{ row: recorded(stated), seen: [] }] }],
  'left-replaced-channel': [
    { desired: [yes], recorded: remembered({ product: 'platform' }), observed: [shown()] },
    replacing,
  ],
  'undone-replaced': [
    {
      desired: [yes],
      recorded: recorded(
        { ...stated, cause: 'undone', undone: { run: 'r1', said: 'opt_in' } },
        PRODUCT,
      ),
      observed: [shown()],
    },
    replacing,
  ],
  'our-opt-out-recorded': [
    { desired: [yes], recorded: { ...recorded(stated), ownership: 'noted' } },
  ],
  'left-before-vanishing': [
    { desired: [yes], recorded: { ...remembered({ news: 'platform' }), ownership: 'noted' } },
  ],
  'renamed-away': [{ desired: [yes], recorded: remembered(), renamed: renamed('') }, recreating],
  erased: [{ desired: [yes], entries: [entry('erasure', '*')] }],
  'left-before': [{ desired: [yes], entries: [entry('opt_out', NEWS)] }],
  'vanished-before': [{ desired: [yes], entries: [entry('vanished', '*')] }],
  'settled-out': [{ desired: [yes], observed: [inNews], entries: [entry('operator', NEWS)] }],
  'stated-for-new-address': [
    { recorded: remembered({ news: 'in' }), observed: [inNews], successors: [successor('no')] },
    keeping,
  ],
  'address-replaced': [
    { recorded: remembered({ news: 'in' }), observed: [inNews], successors: [successor('yes')] },
  ],
  'address-changed': [
    { recorded: remembered({ news: 'in' }), observed: [inNews], successors: [successor('yes')] },
    keeping,
  ],
  'renamed-claimed': [{ desired: [no], recorded: remembered(), renamed: renamed('yes') }],
  renamed: [{ desired: [no], recorded: remembered(), renamed: renamed('') }],
  'several-contacts': [{ desired: [yes], observed: [shown(), shown({ id: 'con_2' })] }],
  uncertified: [{ desired: [yes], certified: false }],
};

function noExample(): never {
  throw new Error('this gate has no example');
}

/** What each gate leaves of the decision: the operations, and whether it is reported. */
const outcomes: Record<string, (found: Found) => void> = {
  nothing: (found) => expect(found).toEqual({ ops: [], conflicts: 0 }),
  conflict: ({ ops, conflicts }) => {
    expect(ops.filter((op) => op !== 'opt_out')).toEqual([]);
    expect(conflicts).toBeGreaterThan(0);
  },
  opt_out: ({ ops }) => expect(ops).toEqual(['opt_out']),
  delete: ({ ops }) => expect(ops).toEqual(['delete']),
};

interface Found {
  ops: string[];
  conflicts: number;
}

describe('each gate holds for the person whom it is about', () => {
  test.each(gates)('$id: $asks', ({ id, action }) => {
    const [known, policy = rules] = examples[id] ?? noExample();
    const [channel] = explainPerson(decoded(states(known)), policy).channels;
    expect(channel?.gates.filter(({ held }) => held).map(({ gate }) => gate.id)).toEqual([id]);
    expect(channel?.verdict).toMatchObject({ by: id, action });
    const { changes, problems } = decidePerson(decoded(states(known)), policy);
    outcomes[action]?.({ ops: changes.map(({ op }) => op), conflicts: problems.length });
  });
});

const newer = { ...replacing, policy: { ...rules.policy, resubscribe: 'newer' as const } };
const absentKept = { ...keeping, policy: { ...rules.policy, absent: 'keep' as const } };
const consented = (at: number): States['desired'][number] => ({
  ...yes,
  body: canonicalJson({ ...Object(JSON.parse(yes.body)), consentAt: at }),
});
const outOfNews = shown({ news: 'opt_out' });
const leftNews: RecordedRow = {
  ...remembered({ seen: outOfNews }),
  body: canonicalJson({
    contacts: [JSON.parse(outOfNews.body)],
    defaults: [],
    channels: { [NEWS]: { is: 'opt_out', by: 'platform', made: { after: null, by: NOON } } },
  }),
};

test.each<[string, string, Partial<States>, PersonRules]>([
  [
    'settled-out',
    'is gone from the CRM, and whose contact is ours',
    {
      recorded: remembered({ news: 'in' }),
      observed: [inNews],
      entries: [entry('operator', NEWS)],
    },
    absentKept,
  ],
  [
    'left-before',
    'consented anew, but left the channel that this one replaces',
    {
      desired: [consented(NOON + 1)],
      recorded: leftNews,
      observed: [outOfNews],
      entries: [entry('opt_out', PRODUCT)],
    },
    newer,
  ],
])('%s holds also for a person who %s', (id, _, known, policy) => {
  const [channel] = explainPerson(decoded(states(known)), policy).channels;
  expect(channel?.verdict.by).toBe(id);
});

test('a person to whom no gate applies passes them all', () => {
  const [channel] = explainPerson(decoded(states({ desired: [yes] })), rules).channels;
  expect(channel?.verdict).toMatchObject({ by: 'not-on-platform', action: 'create' });
  expect(channel?.gates.map(({ held }) => held)).not.toContain(true);
  expect(channel?.gates.length).toBeGreaterThan(9);
});

test('a stated opt-out of a protected person passes', () => {
  const known = { desired: [no], recorded: remembered({ news: 'in' }), observed: [inNews] };
  const { changes } = decidePerson(decoded(states(known)), {
    ...rules,
    protects: new Set([ANN]),
  });
  expect(changes.map(({ op }) => op)).toEqual(['opt_out']);
});

test('each rule and each gate has a name of its own', () => {
  const ids = [...table, ...gates].map(({ id }) => id);
  expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
});
