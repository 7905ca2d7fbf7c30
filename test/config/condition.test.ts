/** Conditions: what is said of a wrong one, and what a right one gives. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { compile, environment } from '../../src/config/schema/cel-condition.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (include: string, subscription = 's') =>
  minimal(
    'contacts:\n  source: { type: csv, path: p }\n  id: i\n  email: e\n' +
      `  include: ${include}\n  channels: [{ id: a, subscription: ${subscription} }]`,
  );
const scope = "'true'";
const naming = 'write record.NAME or record["NAME"]';
const texts = 'fields are texts, "" when empty: compare with "…", or write int(record.NAME)';
const grammar =
  'is no valid condition (CEL) from here on' +
  `  → compare with ==, join with && and ||, and ${naming}`;
const unknown = `names what is not known  → the only name is record: ${naming}`;
const nameless = `uses the record without the name of a field  → ${naming}`;
const noFunction =
  'calls a function that is not known  → use one of CEL: size, startsWith, matches, int …';
const noType = (type: string) =>
  `gives a value of type ${type}, not true or false  → compare it: == "yes"`;
const noFit = (types: string) => `combines types that do not fit (${types})  → ${texts}`;

describe('a mistake in a condition', () => {
  it.each([
    [`record.a ==`, 24, grammar],
    [`record.a = "x"`, 22, grammar],
    [`record.a b`, 22, grammar],
    [`record.a == "x`, 25, 'opens a quote that is not closed  → close it'],
    ['('.repeat(300), 263, 'is too long or nested too deeply  → shorten it'],
    [`lifecycle == "lead"`, 13, unknown],
    [`record.a == "x" && recrd.b == "y"`, 32, unknown],
    [`record.a == "x" && near(record.b)`, 32, noFunction],
    [`record.a.reverse() == "x"`, 13, noFunction],
    [`now() > timestamp(record.a)`, 13, noFunction],
    [`size(record.a, 3) > 1`, 13, `calls a function on what it does not take  → ${texts}`],
    [`record.age > 18`, 13, noFit('string > int')],
    [`record.a == null`, 13, noFit('string == null')],
    [`record.a in [1, 2]`, 13, noFit('string in list<int>')],
    [`!record.a`, 13, noFit('!string')],
    [`record.a && true`, 13, `joins what is not true or false  → ${texts}`],
    [`record.a ? true : false`, 20, `asks with ? what is not true or false  → ${texts}`],
    [`record.a.b == "x"`, 22, 'looks for a field in a text  → a name with dots is record["a.b"]'],
    [`record == {}`, 13, nameless],
    [`size(record) > 1`, 18, nameless],
    [`record[record.a] == "x"`, 13, nameless],
    [`["x"].exists(record, record == "x")`, 26, nameless],
    [
      `record.a.matches("(")`,
      30,
      'is no regular expression that can be used  → correct the pattern (RE2: without lookaround and backreferences, repeats up to 1000)',
    ],
    [`record.a`, 13, noType('string')],
    [`1`, 13, noType('int')],
    [`null`, 13, noType('null')],
  ])('%j is reported with its place', (text, col, expected) => {
    const line = `mirror.yaml:10:${col}  contacts.include  ${expected}`;
    expect(mistakes(contacts(`'${text}'`))).toEqual([line]);
  });

  const branches =
    'gives different types after ? and :  → give true or false, and null only in when';
  it.each([
    ['true', '11:45', '  is not a text  → put it in quotes'],
    ["'recrd.a'", '11:46', `  ${unknown}`],
    ["'record.a'", '11:46', `  ${noType('string')}`],
    [`'record.a == "" ? null : "x"'`, '11:46', `  ${branches}`],
    [`'[record.a == "" ? null : true, false] == []'`, '11:46', `  ${grammar}`],
  ])('when: %s', (text, place, expected) => {
    const at = `mirror.yaml:${place}  contacts.channels[0].subscription.when`;
    expect(mistakes(contacts(scope, `{ when: ${text} }`))).toEqual([at + expected]);
  });

  it('is reported for an include that can be null', () => {
    expect(mistakes(contacts(`'record.a == "" ? null : true'`))).toEqual([
      `mirror.yaml:10:13  contacts.include  ${branches}`,
    ]);
  });

  it.each([
    ["{ whn: 'true' }", ['11:23', '11:39']],
    ['{}', ['11:23']],
    ['[a]', ['11:37']],
    ['5', ['11:37']],
  ])('is reported for a subscription of %s', (subscription, places) => {
    const found = mistakes(contacts(scope, subscription)) ?? [];
    expect(found.map((line) => line.split('  ')[0])).toEqual(
      places.map((place) => `mirror.yaml:${place}`),
    );
  });

  it.each([
    ['in doubled quotes', `'record.a == ''x'' && recrd.b == "y"'`, '10:34'],
    ['behind escapes', String.raw`"record.a == \"x\" && recrd.b == 'y'"`, '10:34'],
    ['without quotes', 'record.a == "x" && recrd.b == "y"', '10:31'],
    ['in a second line', 'record.a == "x" &&\n    recrd.b == "y"', '11:5'],
    ['in a folded block', '>-\n    record.a == "x" &&\n    recrd.b == "y"', '12:5'],
    ['in a literal block', '|\n    record.a == "x" &&\n      recrd.b == "y"', '12:7'],
    ['behind a variable, at the beginning', `'record.a == "\${X}" && recrd.b == "y"'`, '10:12'],
  ])('is reported %s', (_, text, place) => {
    const [line] = mistakes(contacts(text), { X: 'secret' }) ?? [];
    expect(line).toMatch(`mirror.yaml:${place}  contacts.include  names what is not known`);
  });

  it('in a variable is reported without its value', () => {
    const lines = mistakes(contacts("'${X}'"), { X: 'sk_secret.name("sk_secret") == sk_secret' });
    expect(lines?.join()).toContain('(it comes from ${X})');
    expect(lines?.join()).not.toContain('sk_secret');
  });
});

describe('a valid condition', () => {
  const judge = (text: string, record: Record<string, unknown>) => {
    const found = compile(text, { nullable: true });
    if (!('judge' in found)) throw new Error(found.reason);
    return found.judge(record);
  };

  it.each([
    [`record.lifecycle != "lead"`, { lifecycle: 'customer' }, true],
    [`record.lifecycle != "lead"`, { lifecycle: ' lead ' }, false],
    [`record["Lifecycle Stage"] == "Lead"`, { 'Lifecycle Stage': 'Lead' }, true],
    [`int(record.age) > 18`, { age: '42' }, true],
    [`record.age != "" && int(record.age) > 18`, { age: '' }, false],
    [`record.country in ["DE", "AT"]`, { country: 'AT' }, true],
    [`record.email.endsWith("@example.com")`, { email: 'a@example.com' }, true],
    [`record.tags.split(";").exists(tag, tag == "vip")`, { tags: 'a;vip' }, true],
    [
      `timestamp(record.at) > timestamp("2026-01-01T00:00:00Z")`,
      { at: '2026-02-01T00:00:00Z' },
      true,
    ],
    [`has(record.a)`, { a: '' }, true],
    [`record.age == "42"`, { age: 42 }, true],
    [`int(record.age) > 18`, { age: 42 }, true],
    [`record.vip == "true"`, { vip: true }, true],
    [`record.a == ""`, { a: null }, true],
    [`record["a.b"] == "x"`, { a: { b: ' x ' } }, true],
    [`record.a == "" ? null : record.a == "yes"`, { a: '' }, null],
    [`record.a == "" ? null : record.a == "yes"`, { a: 'yes' }, true],
    [`record.a == "" ? null : record.a == "yes"`, { a: 'no' }, false],
    [`record.a == "1" ? true : (record.a == "0" ? false : null)`, { a: '' }, null],
    [`record.a == "null" ? null : true`, { a: 'null' }, null],
    [`dyn(record.a)`, { a: 'yes' }, 'yes'],
  ])('%s of %j', (text, record, gives) => {
    expect(judge(text, record)).toEqual({ gives });
  });

  it.each([
    [`int(record.age) > 18`, { age: 'forty' }, ['age']],
    [`record.b == "x" || bool(record.age)`, { age: 'forty', b: '' }, ['age']],
    [`record.age == "42"`, {}, ['age']],
    [`record.age == "42"`, { age: [42] }, ['age']],
    [`record.b == "x" || record.age == "42"`, { age: { in: 42 }, b: 'x' }, ['age']],
    [`record.constructor == "x"`, {}, ['constructor']],
    [`record.a != "gelöscht"`, { a: 'gel\uFFFDscht' }, ['a']],
    [`timestamp(record.a) > timestamp(record.b)`, { a: 'x', b: '' }, ['a']],
  ])('%s fails on %j', (text, record, failsOn) => {
    expect(judge(text, record)).toEqual({ failsOn });
  });

  it('names each field it reads once', () => {
    const { contacts: found } = load(
      contacts(
        `'record.a == "x" && (record["b c"] == "" || has(record.d)) && record.a != "y"'`,
        `{ when: '[record.e].exists(x, x == record.f) ? null : true' }`,
      ),
    );
    const subscription = found?.channels[0]?.subscription;
    expect(found?.include?.fields).toEqual(['a', 'b c', 'd']);
    const when = typeof subscription === 'object' && 'when' in subscription && subscription.when;
    expect(when && when.fields).toEqual(['e', 'f']);
  });

  it('is in the example, and reads columns of its export', () => {
    const { contacts: found } = loadConfig('config/conditions.yaml', { PLATFORM_API_KEY: 'k' });
    const [header] = readFileSync('config/demo/people.csv', 'utf8').split('\n');
    const subscription = found?.channels[1]?.subscription;
    const isCondition = typeof subscription === 'object' && 'when' in subscription;
    const when = isCondition ? subscription.when : undefined;
    const fields = [...(found?.include?.fields ?? []), ...(when?.fields ?? [])];
    expect(fields).toEqual(['Lifecycle Stage', 'Product updates consent']);
    expect(header?.split(',')).toEqual(expect.arrayContaining(fields));
    const given = ['', 'Yes', 'no'].map((is) => when?.judge({ 'Product updates consent': is }));
    expect(given).toEqual([null, true, false].map((gives) => ({ gives })));
  });

  describe('as the page about values and conditions shows it', () => {
    const page = readFileSync('docs/values-and-conditions.md', 'utf8');
    const section = (heading: string) => page.split(`${heading}\n`)[1]?.split(/\n##+ /)[0] ?? '';

    it('is each one in its table', () => {
      const stated = [...section('## Conditions').matchAll(/`([^`\n]*record[^`\n]+)`/g)];
      expect(stated.length).toBeGreaterThan(8);
      for (const [, text = ''] of stated)
        expect([text, judge(text, {})]).toEqual([text, expect.anything()]);
    });

    it('has the functions that it names', () => {
      const known = environment.getDefinitions().functions.map(({ name }) => name);
      const named = [...section('### Functions').matchAll(/`(\w+)`/g)].map(([, name]) => name);
      expect(named.length).toBeGreaterThan(30);
      expect(['in', ...known]).toEqual(expect.arrayContaining(named));
    });
  });
});

describe('the fields `deleted` and `unsubscribed`', () => {
  const flag = (lines: string) => `${contacts(scope)}\n${lines}`;

  it('take a condition', () => {
    const when = `{ when: 'record.a == "x"' }`;
    const found = load(flag(`  deleted: ${when}\n  unsubscribed: ${when}`)).contacts;
    expect(found?.deleted).toMatchObject({ when: { fields: ['a'] } });
    expect(found?.unsubscribed).toMatchObject({ when: { text: 'record.a == "x"' } });
  });

  it('accept true and false from it, and nothing else', () => {
    const when = `{ when: 'record.a == "x" ? null : true' }`;
    for (const field of ['deleted', 'unsubscribed'])
      expect(mistakes(flag(`  ${field}: ${when}`))?.join()).toMatch(
        new RegExp(`contacts\\.${field}\\.when  gives different types after \\? and :`),
      );
  });
});
