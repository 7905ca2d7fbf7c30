/**
 * Style that runs: where the real clock comes in, where turns are taken, and words. A rule is
 * data and a pure function in this folder, and brings texts that break it, so that no rule can fall
 * asleep. Lint rules are tried on a planted file likewise.
 */
import { dirname } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import * as code from './code.ts';
import { layers } from './layers.ts';
import { lint, lintImports, planted, plantedImports } from './lint.ts';
import { breaches, codeOf, isBalanced, readProject, type FileText, type Rule } from './text.ts';
import { wordRule, workplaceRule } from './words.ts';

const rules: readonly Rule[] = [
  code.clockRule,
  code.turnRule,
  code.processRule,
  code.environmentRule,
  code.addressRule,
  code.columnRule,
  code.commandRule,
  wordRule,
  workplaceRule,
];
const project = readProject();

describe.each(rules.map((rule) => [rule.name, rule] as const))('%s', (_name, rule) => {
  test('holds', () => {
    expect(breaches(rule, project)).toEqual([]);
  });

  test.each(named(rule.planted))('finds %s', (_text, file) => {
    expect(breaches(rule, [file])).toHaveLength(1);
    expect(breaches(rule, [file])[0]).toMatch(/^[\w./-]+:\d+ {2}\w+: .+ → .+$/);
  });

  test.each(named(rule.harmless))('accepts %s', (_text, file) => {
    expect(breaches(rule, [file])).toEqual([]);
  });
});

describe('lint', () => {
  let found: Awaited<ReturnType<typeof lint>>;
  beforeAll(async () => void (found = await lint()));

  test.each(Object.keys(planted))('finds %s', (rule) => {
    expect(found).toContain(rule);
  });
});

describe('imports', () => {
  let found: Awaited<ReturnType<typeof lintImports>>;
  beforeAll(async () => void (found = await lintImports()));

  test.each(plantedImports.refused)('%s is refused: %s', (path, text) => {
    expect(found).toContainEqual([path, text]);
  });

  test.each(plantedImports.accepted)('%s is accepted: %s', (path, text) => {
    expect(found).not.toContainEqual([path, text]);
  });

  test('every folder of src is in the order', () => {
    const folders = project
      .map(({ path }) => dirname(path))
      .filter((one) => one.startsWith('src/'));
    expect([...new Set(folders)].toSorted()).toEqual(
      layers
        .flat()
        .map((one) => `src/${one}`)
        .toSorted(),
    );
  });
});

test('every file of the project is read', () => {
  const paths = project.map(({ path }) => path);
  expect(paths).toEqual(
    expect.arrayContaining(['src/cli.ts', 'bin/crm-mirror.mjs', 'package.json']),
  );
  expect(paths.filter((path) => path.startsWith('src/')).length).toBeGreaterThan(50);
});

describe('code without comments and quotes', () => {
  test.each([
    ["a('x // y') // z", "a('      ')     "],
    ['`a ${b(`c ${d} e`)} f` + g', '`  ${b(`  ${d}  `)}  ` + g'],
    ['`${{ a: `}` }.a}`; b', '`${{ a: ` ` }.a}`; b'],
    ["a.replace(/['\"`/*]+[/]/g, '') / b / c", "a.replace(/            g, '') / b / c"],
    ["'it\\'s' /* ' */ + \"'\"", '\'     \'         + " "'],
    ['return /[{]/.test(a)', 'return /   /.test(a)'],
    ['f(a / b, c[0] / 2, `${d / 2}/`)', 'f(a / b, c[0] / 2, `${d / 2} `)'],
    ['a; // ${ `\nb', 'a;        \nb'],
  ])('%s', (text, expected) => {
    expect(codeOf(text)).toBe(expected);
  });

  test('keeps its length for every file', () => {
    const texts = project.filter(({ path }) => /\.(ts|mjs)$/.test(path));
    const lost = texts.filter(({ text }) => !isBalanced(codeOf(text))).map(({ path }) => path);
    expect(lost).toEqual([]);
    expect(isBalanced('a({ b: [1) })')).toBe(false);
  });
});

/** For the names of tests: path and text on one line. */
function named(files: readonly FileText[]): [string, FileText][] {
  return files.map((file) => [`${file.path}  ${file.text.trim().slice(0, 60)}`, file]);
}
