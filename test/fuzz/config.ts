/** Configuration files: any text, broken copies of the examples, and their structure twisted. */
import fc from 'fast-check';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { loadConfig } from '../../src/config/load-config.ts';
import { Invalid } from '../../src/domain/errors.ts';
import { area, judgeLines, mutated, scrap, SECRET, twisted } from './area.ts';

const examples = ['mirror', 'conditions', 'http', 'hubspot', 'map', 'salesforce', 'sql'];
const deployed = ['deploy/mirror'];

const yaml = fc.constantFrom(
  '{ ',
  ' }',
  '[ ',
  ' ]',
  '# ',
  '> ',
  '| ',
  '&a ',
  '*a ',
  '<<: *a',
  '!!set ',
  '!x ',
  '? ',
  '- ',
  ': ',
  ':\n',
  '\n',
  '\n  ',
  '---\n',
  '%YAML 1.1\n',
  '${A}',
  '${C:-x}',
  '$${',
  '.nan',
  '~',
  'when: ',
  'include: ',
  'protect: ',
  'server: ',
  'returns: ',
  'notices: ',
  'webhook: ',
);

/** Every line says where, what and how to mend it. */
const line = /^mirror\.yaml:\d+:\d+ {2}[^\n]+ {2}→ [^\n]+$/u;

export const configArea = area('config', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-config-'));
  const path = join(folder, 'mirror.yaml');
  const root = join(import.meta.dirname, '../../config');
  const texts = await Promise.all(
    [...examples, ...deployed].map((name) => readFile(join(root, `${name}.yaml`), 'utf8')),
  );
  const names = texts.flatMap((text) => [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
  const env = Object.fromEntries([...names, 'A'].map((name) => [name, SECRET]));
  const values: unknown[] = texts.map((text) => parse(text));
  const soup = fc.array(fc.oneof(yaml, scrap), { maxLength: 30 }).map((all) => all.join(''));
  return {
    inputs: fc.oneof(
      { weight: 3, arbitrary: mutated(texts, fc.oneof(yaml, scrap)) },
      { weight: 3, arbitrary: twisted(values).map((value) => written(value)) },
      { weight: 1, arbitrary: soup },
    ),
    async judge(text) {
      await writeFile(path, text);
      try {
        loadConfig(path, env);
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        const said = error.message.replaceAll(`${folder}/`, '');
        judgeLines(said);
        for (const one of said.split('\n')) judgeForm(one);
      }
    },
    close: async () => rm(folder, { recursive: true, force: true }),
  };
});

function judgeForm(text: string): void {
  if (!line.test(text)) throw new Error(`no position, reason and way: ${text}`);
}

/** As YAML, or as JSON where the library of YAML cannot write it. */
function written(value: unknown): string {
  try {
    return stringify(value);
  } catch {
    return JSON.stringify(value);
  }
}
