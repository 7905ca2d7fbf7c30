/** Writes the tables of docs/consent.md from the rules and gates themselves. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { runGates } from '../../../src/engine/plan/run-gates.ts';
import { gates } from '../../../src/records/contact/consent/gates.ts';
import { type Rule, rules } from '../../../src/records/contact/consent/rules.ts';

const page = fileURLToPath(new URL('../../../docs/consent.md', import.meta.url));

const actions: Record<Rule['action'], string> = {
  nothing: 'nothing',
  create: 'create',
  opt_in: 'opt in',
  opt_out: 'opt out',
  delete: 'opt our contact out where it is subscribed, then delete it',
  conflict: 'nothing; report a conflict',
};

/** What decide.ts makes of a gate, where that is not what its action says alone. */
const outcomes: Record<string, string> = {
  'address-replaced': 'delete our contact without an opt-out; opt the others of the address out',
  'renamed-claimed': 'report a conflict; opt out only the contacts that no such record claims',
};

function outcomeOf({ id, action }: Pick<Rule, 'id' | 'action'>): string {
  return outcomes[id] ?? actions[action];
}

const tables: Record<string, string[]> = {
  rules: [
    '| No. | Rule | The rule matches if | What happens |',
    '| --: | :--- | :------------------ | :----------- |',
    ...rules.map(
      ({ id, row, asks, action }) => `| ${row} | \`${id}\` | ${asks} | ${actions[action]} |`,
    ),
  ],
  gates: [
    '| No. | Gate | Asked about | The gate stops it if | What happens instead |',
    '| --: | :--- | :---------- | :------------------- | :------------------- |',
    ...gates.map(({ id, row = '', about, asks, action }) => {
      return `| ${row} | \`${id}\` | ${aboutOf(about)} | ${asks} | ${outcomeOf({ id, action })} |`;
    }),
  ],
  'run gates': [
    '| Gate | The change is kept back if |',
    '| :--- | :------------------------- |',
    ...runGates.map(({ id, asks }) => `| \`${id}\` | ${asks} |`),
  ],
};

function aboutOf(about: readonly Rule['action'][]): string {
  const isAll = about.length === Object.keys(actions).length;
  return isAll ? 'everything' : about.map((action) => action.replace('_', ' ')).join(', ');
}

/** Returns the page with its tables written anew between their marks. */
export async function withTables(text: string): Promise<string> {
  const written = Object.entries(tables).reduce((before, [name, lines]) => {
    const [start, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
    const from = before.indexOf(start);
    const to = before.indexOf(end);
    if (from < 0 || to < from) throw new Error(`docs/consent.md has no ${start} … ${end}`);
    return `${before.slice(0, from)}${start}\n\n<!-- prettier-ignore -->\n${lines.join('\n')}\n\n${before.slice(to)}`;
  }, text);
  return format(written, { ...(await resolveConfig(page)), parser: 'markdown' });
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, await withTables(readPage()));
}
