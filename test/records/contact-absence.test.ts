/** People missing in the CRM, row by row: what is due, and which contacts may be deleted. */
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/domain/record.ts';
import { enrolmentBody } from '../../src/records/contact/observe/contact-state.ts';
import {
  remembered,
  shown,
  steps,
  wish,
  LATER,
  open,
  outside,
  states,
  type States,
  acked,
  bodyOf,
} from '../support/records/record-stage.ts';

const hour = 3_600_000;
const absent = (readings: number, hours: number, waited: number | null = null) => ({
  readings,
  firstAt: LATER - hours * hour,
  lastAt: LATER,
  ageMs: hours * hour,
  waitedMs: waited === null ? null : waited * hour,
});
const long = absent(2, 20, 0);
const there = {
  recorded: remembered({ news: 'in' }),
  observed: [shown({ news: 'opt_in' })],
} satisfies Partial<States>;
const optsOut = open({ contacts: { absent: 'opt_out' } }).contacts;
const deletes = open({ contacts: { absent: 'opt_out' }, absence: { deletes: 'created' } }).contacts;
const deletesAll = open({ absence: { deletes: 'owned' } }).contacts;

const flagged = () => wish({ archived: 'yes' });
const optOut = ['opt_out ch_news → con_1'];

describe('policy.absent: opt_out', () => {
  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['missing for long',                      { absence: long }, optOut],
    ['missing in too few readings',           { absence: absent(1, 0) }, []],
    ['missing in one reading, for long',      { absence: absent(1, 99) }, []],
    ['missing in many, for too short a time', { absence: absent(9, 19.9) }, []],
    ['missing, where it does not count',      { absence: undefined }, []],
    ['missing for long by the calendar alone', { absence: { ...long, ageMs: 5 } }, []],
    ['missing from an uncertified reading',   { absence: long, certified: false }, []],
    ['flagged',                               { desired: [flagged()] }, optOut],
    ['flagged in an uncertified reading',     { desired: [flagged()], certified: false }, []],
    ['flagged, and present beside it',        { desired: [flagged(), wish()] }, []],
    ['out of scope for long',                 { desired: [outside()], absence: long }, optOut],
    ['out of scope since now',                { desired: [outside()] }, []],
    ['flagged, and out of scope beside it',   { desired: [flagged(), outside()] }, []],
    ['… for long',                            { desired: [flagged(), outside()], absence: long }, optOut],
    ['flagged twice',                         { desired: [flagged(), flagged()] }, optOut],
    ['flagged, and a record of the address is missing', { desired: [flagged()], strays: true }, []],
    ['… for long',                            { desired: [flagged()], strays: true, absence: long }, optOut],
    ['flagged and out of scope in one',       { desired: [outside({ archived: 'yes' })] }, []],
    ['out of scope, and present beside it',   { desired: [outside(), wish()], absence: long }, []],
    ['an invalid record beside it',           { desired: [outside(), wish({ newsletter: 'eh' })], absence: long }, []],
  ])('%s', (_, known, sent) => {
    expect(steps(optsOut.decide(states({ ...there, ...known })))).toEqual(sent);
  });

  test('an opt-out that the CRM states is no opt-out for absence', () => {
    const guards = (known: Partial<States>) =>
      optsOut.decide(states({ ...there, ...known })).changes.map(({ guard }) => guard);
    expect(guards({ absence: long })).toEqual(['delete']);
    expect(guards({ desired: [wish({ newsletter: 'no' })] })).toEqual(['opt_out']);
    expect(guards({ desired: [outside({ newsletter: 'no' })] })).toEqual(['opt_out']);
    expect(guards({ desired: [wish({ product: 'yes' })] })).toEqual(['opt_in']);
  });

  test.each(['opt_in', 'opt_out', undefined] as const)(
    'opts out only our contact, the others being %s',
    (news) => {
      const others = ['con_0', 'con_2'].map((id) => shown({ id, ...(news && { news }) }));
      const observed = [...others, shown({ news: 'opt_in' })];
      const decision = optsOut.decide(states({ ...there, observed, absence: long }));
      expect(steps(decision)).toEqual(optOut);
    },
  );

  test.each([
    ['absence', { absence: long }],
    ['flag', { desired: [flagged()] }],
  ] as const)('the change carries the cause %s', (cause, known) => {
    const { changes } = deletes.decide(states({ ...there, ...known }));
    const bodies = changes.map(({ op, body }) => ({
      op,
      ...enrolmentBody.parse(JSON.parse(body)),
    }));
    expect(bodies).toMatchObject([{ op: 'opt_out', cause }, { op: 'delete' }]);
  });

  test('does not take a person for ours who is known by an opt-out of a record out of scope', () => {
    const desired = [outside({ newsletter: 'no' })];
    const observed = [shown({ news: 'opt_in', product: 'opt_in' })];
    const { note, adopts, changes } = optsOut.decide(states({ desired, observed }));
    expect({ sent: steps({ changes }), adopts, ownership: note?.ownership }).toEqual({
      sent: optOut,
      adopts: false,
      ownership: 'noted',
    });
    for (const kind of [optsOut, deletesAll]) {
      const next = states({
        recorded: note,
        observed: [shown({ product: 'opt_in' })],
        absence: long,
      });
      expect(steps(kind.decide(next))).toEqual([]);
    }
    const silent = optsOut.decide(states({ recorded: note, observed, certified: false }));
    expect(silent.note?.ownership).toBe('noted');
    const named = optsOut.decide(states({ recorded: note, observed, desired: [wish()] }));
    expect(named.note?.ownership).toBe('adopted');
  });
});

describe('policy.deletes', () => {
  const adopted = { ...there, recorded: { ...there.recorded, ownership: 'adopted' as const } };
  const remove = ['delete  → con_1'];
  const out = [shown({ news: 'opt_out' })];
  const outByUs = { recorded: remembered({ news: 'us' }), observed: out };
  const notIn = { recorded: remembered({}), observed: [shown()] };
  const other = [shown({ id: 'con_9', news: 'opt_in' })];

  const both = [...optOut, ...remove];
  const [seen = shown()] = there.observed;
  const body = canonicalJson({ ...JSON.parse(seen.body), others: true });
  const elsewhere = { ...there, observed: [{ ...seen, body }], absence: long };
  const namesOwn = { facts: { namesAll: false, defaults: {} } };

  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['created, missing for long',            { ...there, absence: long }, both],
    ['created, flagged',                     { ...there, desired: [flagged()] }, both],
    ['created, not missing for long',        { ...there, absence: absent(1, 0) }, []],
    ['adopted',                              { ...adopted, absence: long }, optOut],
    ['where the run may delete nobody',      { ...there, absence: long, mayDelete: false }, optOut],
    ['without a certificate',                { ...there, desired: [flagged()], certified: false }, []],
    ['foreign',                              { observed: there.observed, absence: long }, []],
    ['not on the platform',                  { recorded: there.recorded, absence: long }, []],
    ['only another contact remains',  { ...there, observed: other, absence: long }, []],
    ['not subscribed, nothing known of why', { ...notIn, absence: long }, remove],
    ['opted out by us',                      { ...outByUs, absence: long }, remove],
    ['in a channel of others, too',          { ...elsewhere, ...namesOwn }, optOut],
    ['the same, which may be a default',     elsewhere, both],
  ])('created: %s', (_, known, sent) => {
    expect(steps(deletes.decide(states(known)))).toEqual(sent);
  });

  test('owned: adopted people too', () => {
    expect(steps(deletesAll.decide(states({ ...adopted, absence: long })))).toEqual(both);
  });

  test('sends an opt-out that a flagged record states first, because the delete may be held', () => {
    const desired = [wish({ archived: 'yes', do_not_mail: 'yes' })];
    const decision = deletes.decide(states({ ...there, desired }));
    expect(steps(decision)).toEqual([...optOut, ...remove]);
    expect(decision.changes.map(({ guard }) => guard)).toEqual(['opt_out', 'delete']);
  });

  test.each([
    ['left the channel', { recorded: remembered({ news: 'platform' }), observed: [shown()] }],
    ['is shown out of it', { ...there, observed: [shown({ news: 'opt_out' })] }],
    ['left all mail', { ...there, observed: [shown({ news: 'opt_in', status: 'unsubscribed' })] }],
  ])('deletes a person who %s: the do-not-contact list remembers', (_, known) => {
    expect(steps(deletes.decide(states({ ...known, absence: long })))).toContain(remove[0]);
  });

  test('does not delete a contact that replaced the one we created', () => {
    const observed = [shown({ id: 'con_9', news: 'opt_in' })];
    const { note } = deletes.decide(states({ ...there, observed, desired: [wish()] }));
    expect(note).toMatchObject({ id: 'con_9', ownership: 'adopted' });
    expect(steps(deletes.decide(states({ recorded: note, observed, absence: long })))).toEqual([
      'opt_out ch_news → con_9',
    ]);
  });

  describe('deleteAfter: 30d', () => {
    const days = 24;
    const waits = { deletes: 'created', deleteAfterMs: 30 * days * hour } as const;
    const delayed = open({ contacts: { absent: 'opt_out' }, absence: waits }).contacts;
    const kept = open({ contacts: { absent: 'keep' }, absence: waits }).contacts;
    const waited = (n: number | null) => absent(9, 40 * days, n === null ? null : n * days);

    // prettier-ignore
    test.each<[string, Partial<States>, string[]]>([
      ['due, subscribed: opted out alone',              { ...there, absence: waited(0) }, optOut],
      ['out for 29 days',                               { ...outByUs, absence: waited(29.9) }, []],
      ['out for 30 days',                               { ...outByUs, absence: waited(30) }, remove],
      ['never due, for whatever reason',                { ...outByUs, absence: waited(null) }, []],
      ['for 30 days, and not opted out yet',            { ...there, absence: waited(30) }, optOut],
      ['not subscribed when due, 30 days ago',          { ...notIn, absence: waited(30) }, remove],
      ['for 30 days, where the run may delete nobody',  { ...outByUs, absence: waited(30), mayDelete: false }, []],
      ['flagged: at once',                              { ...there, desired: [flagged()] }, both],
      ['flagged, with no absence that counts',          { ...outByUs, desired: [flagged()] }, remove],
    ])('%s', (_, known, sent) => {
      expect(steps(delayed.decide(states(known)))).toEqual(sent);
    });

    // prettier-ignore
    test.each<[string, Partial<States>, string[]]>([
      ['subscribed, due for 29 days', { ...there, absence: waited(29.9) }, []],
      ['subscribed, due for 30 days', { ...there, absence: waited(30) }, both],
    ])('absent: keep: %s', (_, known, sent) => {
      expect(steps(kept.decide(states(known)))).toEqual(sent);
    });
  });

  test('several contacts: an acknowledged opt-out of one stays ours', () => {
    const observed = [shown({ news: 'opt_in' }), shown({ id: 'con_2', news: 'opt_in' })];
    const desired = [wish({ newsletter: 'no' })];
    const { note, changes } = deletes.decide(states({ ...there, observed, desired }));
    const other = changes.find(({ target }) => target === 'con_2');
    const row = other && deletes.acknowledge(note, other, acked('con_2'));
    expect(row).toMatchObject({ id: 'con_1', ownership: 'created' });
    expect(
      bodyOf(row)
        .contacts.map(({ id }) => id)
        .toSorted(),
    ).toEqual(['con_1', 'con_2']);
  });
});
