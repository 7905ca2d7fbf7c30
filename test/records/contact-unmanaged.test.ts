/** People who are gone from the CRM and subscribed with a contact that is not ours. */
import { describe, expect, test } from 'vitest';
import {
  ANN,
  remembered,
  shown,
  steps,
  wish,
  carryOut,
  NEWS,
  open,
  outside,
  PRODUCT,
  states,
  type States,
  newsOf,
} from '../support/records/record-stage.ts';

const { contacts } = open({ absence: { deletes: 'owned' } });
const flagged = (record: Record<string, unknown> = {}) => wish({ archived: 'yes', ...record });
const inNews = [shown({ news: 'opt_in', product: 'opt_out' })];
const stranger = { observed: inNews, desired: [flagged()] } satisfies Partial<States>;
const ordered = { ...stranger, unmanagedOut: [NEWS] } satisfies Partial<States>;
const ours = { ...remembered({ news: 'in' }), id: 'con_1' };
const noted = { ...ours, ownership: 'noted' as const };
/** The address has a second contact, which is ours. */
const beside = (seen = shown({ id: 'con_2' })): Partial<States> => ({
  mayDelete: false,
  recorded: { ...ours, id: 'con_2' },
  observed: [...inNews, seen],
});
const inBoth = [shown({ news: 'opt_in', product: 'opt_in' })];
const outOfAll = [shown({ news: 'opt_in', status: 'unsubscribed' })];

describe('who is reported', () => {
  const deleted = [`deleted-subscribed ${NEWS}`];
  const left = [`out-of-scope-subscribed ${NEWS}`];
  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['flagged as deleted',                    {}, deleted],
    ['out of scope',                          { desired: [outside()] }, left],
    ['both, by two records',                  { desired: [outside(), flagged()] }, deleted],
    ['in both channels',                      { observed: inBoth }, [...deleted, `deleted-subscribed ${PRODUCT}`]],
    ['by an uncertified reading',             { certified: false }, deleted],
    ['with a contact that is merely noted',   { recorded: noted }, deleted],
    ['beside a contact of ours that is out',  beside(shown({ id: 'con_2', news: 'opt_out' })), deleted],
    ['not: nobody in the CRM',                { desired: [] }, []],
    ['not: present beside it',                { desired: [flagged(), wish()] }, []],
    ['not: an invalid record beside it',      { desired: [flagged(), wish({ newsletter: 'eh' })] }, []],
    ['not: the contact is ours',              { recorded: ours }, []],
    ['not: opted out of the channel',         { observed: [shown({ news: 'opt_out' })] }, []],
    ['not: unsubscribed from all mail',       { observed: outOfAll }, []],
    ['not: not on the platform',              { observed: [] }, []],
  ])('%s', (_, known, told) => {
    const { problems, changes, note } = contacts.decide(states({ ...stranger, ...known }));
    expect(problems.map(({ cause, part }) => `${cause} ${part}`)).toEqual(told);
    if (told.length === 0) return;
    expect(changes).toEqual([]);
    if (!('recorded' in known)) expect(note).toBeUndefined();
  });

  test('a stated opt-out is sent, as ever', () => {
    const known = states({ ...stranger, desired: [flagged({ do_not_mail: 'yes' })] });
    expect(steps(contacts.decide(known))).toEqual(['opt_out ch_news → con_1']);
    expect(contacts.decide(known).problems).toEqual([]);
  });
});

describe('after an operator decided to opt them out', () => {
  const optOut = ['opt_out ch_news → con_1'];
  // prettier-ignore
  test.each<[string, Partial<States>, string[]]>([
    ['flagged as deleted',                         {}, optOut],
    ['out of scope',                               { desired: [outside()] }, optOut],
    ['only the contact that is not ours',          beside(), optOut],
    ['not: decided about another channel',         { unmanagedOut: [PRODUCT] }, []],
    ['not: in the CRM again',                      { desired: [wish()] }, []],
    ['not: the CRM was not read completely',       { certified: false }, []],
    ['not: a record of the address is missing',    { strays: true }, []],
  ])('%s', (_, known, sent) => {
    expect(steps(contacts.decide(states({ ...ordered, ...known })))).toEqual(sent);
  });

  test('the guard for deletes counts the opt-out, and it stays listed until it is made', () => {
    const { changes, problems } = contacts.decide(states(ordered));
    expect(changes).toMatchObject([{ op: 'opt_out', guard: 'delete' }]);
    expect(problems).toMatchObject([
      { cause: 'deleted-subscribed', fix: expect.stringContaining('an operator decided') },
    ]);
  });

  // prettier-ignore
  test.each<[string, Partial<States>, string]>([
    ['flagged as deleted', {}, 'deleted-protected'],
    ['out of scope', { desired: [outside()] }, 'out-of-scope-protected'],
  ])('protected people stay as they are, and stay listed as protected: %s', (_, known, cause) => {
    const { contacts: protecting } = open({ protect: [ANN] });
    const { changes, problems } = protecting.decide(states({ ...ordered, ...known }));
    expect(changes).toEqual([]);
    expect(problems).toMatchObject([
      { cause, crmId: known.desired ? '2' : '1', fix: expect.stringContaining('contacts.protect') },
    ]);
  });

  test('the opt-out is recorded as ours, the contact stays foreign and is never deleted', () => {
    const row = carryOut(contacts, states(ordered));
    expect(row).toMatchObject({ ownership: 'noted', id: 'con_1' });
    expect(newsOf(row)).toMatchObject({
      is: 'opt_out',
      by: 'us',
      cause: 'flag',
    });
    const out = [shown({ news: 'opt_out', product: 'opt_out' })];
    const later = contacts.decide(states({ ...stranger, recorded: row, observed: out }));
    expect(later).toMatchObject({ changes: [], problems: [] });
    const back = contacts.decide(states({ ...stranger, recorded: row }));
    expect(back).toMatchObject({ changes: [], problems: [{ cause: 'deleted-subscribed' }] });
  });

  test('who is in the CRM again and wanted in is opted in, as after any absence', () => {
    const row = carryOut(contacts, states(ordered));
    const out = [shown({ news: 'opt_out', product: 'opt_out' })];
    const again = { recorded: row, observed: out, desired: [wish({ newsletter: 'yes' })] };
    expect(steps(contacts.decide(states(again)))).toEqual(['opt_in ch_news → con_1']);
  });
});
