/** Conditions (include, when, protect): any text, and those that are valid on any record. */
import fc from 'fast-check';
import { renderProblem } from '../../src/domain/errors.ts';
import { compile } from '../../src/config/schema/cel-condition.ts';
import { protect } from '../../src/config/schema/records-schema.ts';
import { ADDRESS, area, judgeText, mutated, scrap, strangeValue } from './area.ts';

const quoted = fc
  .oneof(scrap, fc.constantFrom('yes', ',', '^a+$', '(a|b)*c', '[', '\\d{1,3}', '(?=a)', ADDRESS))
  .map((text) => JSON.stringify(text));
const field = fc.constantFrom('status', 'tags', 'n', 'email', '__proto__', 'lacking');

/** Texts, lists and truths of CEL, in one another as the grammar has them. */
const grammar = fc.letrec<Record<'text' | 'list' | 'truth', string>>((tie) => ({
  text: fc.oneof(
    { depthSize: 'small' },
    quoted,
    field.map((name) => `record.${name}`),
    quoted.map((name) => `record[${name}]`),
    call(tie('text'), fc.constantFrom('lowerAscii', 'upperAscii', 'trim')),
    fc.tuple(tie('list'), quoted).map(([list, by]) => `${list}.join(${by})`),
    fc.tuple(tie('text'), tie('text')).map(([a, b]) => `(${a} + ${b})`),
  ),
  list: fc.oneof(
    { depthSize: 'small' },
    fc.tuple(tie('text'), quoted).map(([text, by]) => `${text}.split(${by})`),
    fc.tuple(tie('text'), fc.integer()).map(([text, most]) => `${text}.split("", ${most})`),
    fc.array(tie('text'), { maxLength: 3 }).map((all) => `[${all.join(', ')}]`),
    fc.tuple(tie('list'), tie('text')).map(([list, to]) => `${list}.map(x, x + ${to})`),
    fc.tuple(tie('list'), tie('truth')).map(([list, when]) => `${list}.filter(x, ${when})`),
  ),
  truth: fc.oneof(
    { depthSize: 'small' },
    fc.tuple(tie('text'), tie('text')).map(([a, b]) => `${a} == ${b}`),
    fc.tuple(tie('text'), quoted).map(([text, pattern]) => `${text}.matches(${pattern})`),
    fc.tuple(tie('text'), tie('list')).map(([text, list]) => `${text} in ${list}`),
    fc.tuple(tie('list'), tie('text')).map(([list, to]) => `${list}.exists(x, x == ${to})`),
    fc.tuple(tie('text'), fc.integer()).map(([text, than]) => `int(${text}) > ${than}`),
    fc.tuple(tie('text'), fc.integer()).map(([text, than]) => `size(${text}) / ${than} < 3`),
    fc.tuple(tie('truth'), tie('truth')).map(([a, b]) => `(${a} || !(${b}))`),
    fc.tuple(tie('truth'), tie('truth')).map(([a, b]) => `(${a} ? ${b} : null)`),
  ),
}));

function call(of: fc.Arbitrary<string>, names: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(of, names).map(([text, name]) => `${text}.${name}()`);
}

const examples = [
  'record["Lifecycle Stage"] != "Lead"',
  'record.status == "" ? null : record.status.lowerAscii() in ["yes", "true"]',
  'record.tags.split(",").exists(tag, tag.matches("^vip-[0-9]+$")) && int(record.n) >= 3',
  'has(record.email) && record.email.endsWith("@example.com") // a comment',
];
const tokens = fc.constantFrom(
  'record',
  '.',
  '[',
  ']',
  '(',
  ')',
  '"',
  '&&',
  '||',
  '!',
  '?',
  ':',
  '==',
  '<',
  '+',
  '-',
  '%',
  'null',
  'true',
  '1',
  '1u',
  '1.5',
  'b"x"',
  'r"x"',
  'has(',
  'size(',
  'int(',
  'matches(',
  '//',
  'timestamp(',
  'duration(',
  'dyn(',
  'type(',
  'in',
  '{',
  '}',
  '.all(x, ',
  're2like(',
  '\n',
);
const soup = fc.array(fc.oneof(tokens, scrap), { maxLength: 15 }).map((all) => all.join(' '));

const value = fc.oneof(
  strangeValue,
  fc.constantFrom('a,'.repeat(400), 'a'.repeat(16_384), 'a'.repeat(16_385), 'yes', '3', '🙂'),
);
const records = fc.array(fc.tuple(field, value), { maxLength: 5 });

export const conditionArea = area('conditions', async () => ({
  inputs: fc.record({
    text: fc.oneof(
      { weight: 3, arbitrary: grammar.truth },
      { weight: 2, arbitrary: mutated(examples, fc.oneof(tokens, scrap)) },
      { weight: 1, arbitrary: soup },
    ),
    nullable: fc.boolean(),
    record: records,
  }),
  async judge({ text, nullable, record }) {
    protect.safeParse([text, { when: text }]);
    const found = compile(text, { nullable });
    if (!('judge' in found)) {
      const line = renderProblem(found);
      judgeText(line);
      if (!/^.+ → .+$/.test(line)) throw new Error(`no way to mend: ${line}`);
      if (!(found.at >= 0 && found.at <= text.length)) throw new Error(`is at ${found.at}`);
      return;
    }
    found.judge(Object.fromEntries(record));
  },
  close: async () => undefined,
}));
