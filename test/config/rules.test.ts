/** Rules about a plan: what is said of a wrong one, and what a right one judges. */
import { afterAll, describe, expect, it } from 'vitest';
import { compileRule } from '../../src/config/schema/rule-condition.ts';
import { askedBy, type PlanFacts } from '../../src/domain/guards/plan-rule.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const withRules = (rules: string) => minimal(`rules:\n${rules}`);
const nothing = { create: 0, opt_in: 0, opt_out: 0, delete: 0, update: 0, archive: 0 };

const facts = (of: Partial<PlanFacts> = {}): PlanFacts => ({
  percent: { optIns: 12.5, deletes: 0, templates: 0 },
  hour: 9,
  weekday: 'Mon',
  mode: 'full',
  mapping_changed: false,
  templates_published: 0,
  first_load: false,
  ...of,
  plan: { ...nothing, people: 1300, opt_in: 1204, create: 1000, ...of.plan },
  usual: { ...nothing, runs: 30, opt_in: 100, ...of.usual },
});

const names =
  'use plan, percent, usual, hour, weekday, mode, mapping_changed, templates_published, first_load';
const days = 'use Mon, Tue, Wed, Thu, Fri, Sat, Sun';
const counts = 'counts are numbers: write plan.opt_in > 1000; weekday and mode are texts';

describe('a mistake in a rule', () => {
  it.each([
    [
      'plan.optin > 3',
      17,
      'names a count that is not known  → plan has create, opt_in, opt_out, delete, update, archive, people',
    ],
    [
      'has(plan.optin)',
      12,
      'asks with has(), and every name exists  → compare the count itself: plan.opt_in > 0',
    ],
    ['people > 3', 12, `names what is not known  → ${names}`],
    ['record.a == "x"', 12, `names what is not known  → ${names}`],
    ['plan.opt_in', 12, 'gives a value of type int, not true or false  → compare it: > 100'],
    ['plan.opt_in > "3"', 12, `combines types that do not fit (int > string)  → ${counts}`],
    [
      'plan.opt_in >',
      25,
      'is no valid condition (CEL) from here on  → compare numbers with > and <, and join with && and ||',
    ],
    ['weekday == "Monday"', 23, `compares weekday with a word that it never is  → ${days}`],
    ['weekday in ["Mon", "sun"]', 31, `compares weekday with a word that it never is  → ${days}`],
    ['"Full" != mode', 12, 'compares mode with a word that it never is  → use full, fast'],
    [
      'first_load || hour > 24',
      33,
      'compares hour so that the answer is always the same  → hour is 0 to 23',
    ],
    ['hour == -1', 20, 'compares hour so that the answer is always the same  → hour is 0 to 23'],
    ['23 < hour', 12, 'compares hour so that the answer is always the same  → hour is 0 to 23'],
    [
      'percent.optIns > 150',
      29,
      'compares percent.optIns so that the answer is always the same  → percent.optIns is 0 to 100',
    ],
    [
      '!(percent.deletes < 0.0)',
      32,
      'compares percent.deletes so that the answer is always the same  → percent.deletes is 0 to 100',
    ],
    [
      'hour && first_load',
      12,
      'joins what is not true or false  → compare numbers with > and <, and join with && and ||',
    ],
  ])('%j is reported with its place', (text, column, expected) => {
    const line = `mirror.yaml:7:${column}  rules[0].when  ${expected}`;
    const found = mistakes(withRules(`  - when: '${text}'\n    then: ask\n`));
    expect(found).toEqual([line]);
  });

  it.each([
    ['then: allow', 'rules[0].then  is not known here  → use ask'],
    [
      'then: ask\n    for: [opt_out]',
      'rules[0].for[0]  is not known here  → use delete or opt_in or template',
    ],
    ['then: ask\n    for: []', 'rules[0].for  is empty'],
  ])('%j is refused, because a rule can only ask, and never for a stated opt-out', (text, said) => {
    const found = mistakes(withRules(`  - when: 'true'\n    ${text}\n`));
    expect(found).toHaveLength(1);
    expect(found?.[0]).toContain(said);
  });
});

describe('a rule', () => {
  it.each<[string, Partial<PlanFacts>, boolean | undefined]>([
    ['plan.opt_in > 1000', {}, true],
    ['plan.opt_in > 1204', {}, false],
    ['plan.opt_in > 10 * usual.opt_in', {}, true],
    ['plan.opt_in > 12.5 * usual.opt_in', {}, false],
    ['usual.runs >= 10 && plan.opt_in > 3 * usual.opt_in', {}, true],
    [
      'usual.runs >= 10 && plan.opt_in > 3 * usual.opt_in',
      { usual: { ...nothing, runs: 9 } },
      false,
    ],
    ['plan.opt_in / usual.opt_in > 3', { usual: { ...nothing, runs: 0 } }, undefined],
    ['percent.optIns > 12', {}, true],
    ['hour < 8 || hour >= 18', {}, false],
    ['hour >= 0 && hour <= 23 && percent.optIns <= 100', {}, true],
    ['weekday.startsWith("M") && hour * 60 > 500', {}, true],
    ['weekday in ["Sat", "Sun"]', { weekday: 'Sun' }, true],
    ['mode == "fast"', {}, false],
    ['mapping_changed && plan.people > 0', { mapping_changed: true }, true],
    ['templates_published > 0', { templates_published: 1 }, true],
    ['first_load', { first_load: true }, true],
    ['true', {}, true],
  ])('%j of %j gives %j', (text, of, expected) => {
    const compiled = compileRule(text);
    expect('judge' in compiled && compiled.judge(facts(of))).toBe(expected);
  });

  it('asks for its classes, in words that name it', () => {
    const lines = [
      `  - { when: 'plan.opt_in > 1000', then: ask, say: Tell the owner, for: [opt_in] }`,
      `  - { when: 'plan.people / usual.create > 1', then: ask, for: [opt_in, delete] }`,
      `  - { when: 'hour > 20', then: ask }`,
    ];
    const { rules } = load(withRules(lines.join('\n')));
    expect(Object.fromEntries(askedBy(rules, facts()))).toEqual({
      opt_in:
        'Tell the owner (the rule `plan.opt_in > 1000`); the rule `plan.people / usual.create > 1` cannot be evaluated',
      delete: 'the rule `plan.people / usual.create > 1` cannot be evaluated',
    });
  });
});
