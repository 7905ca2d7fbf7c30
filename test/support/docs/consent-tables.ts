/** The tables of docs/consent.md, from the rules and gates themselves. */
import { runGates } from '../../../src/engine/plan/run-gates.ts';
import { gates } from '../../../src/records/contact/consent/gates.ts';
import { type Rule, rules } from '../../../src/records/contact/consent/rules.ts';
import { table, type Parts } from './generated-parts.ts';

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
  'address-replaced':
    'delete our contact without an opt-out; opt out the other contacts with the address',
  'renamed-claimed': 'report a conflict; opt out only the contacts that no such record claims',
};

function outcomeOf({ id, action }: Pick<Rule, 'id' | 'action'>): string {
  return outcomes[id] ?? actions[action];
}

/** The rules of consent, the gates behind them, and the gates of a run. */
export const consentParts: Parts = {
  'consent rules': table(
    ['No.', 'Rule', 'The rule matches if', 'What happens'],
    rules.map(({ id, row, asks, action }) => [String(row), `\`${id}\``, asks, actions[action]]),
  ),
  'consent gates': table(
    ['No.', 'Gate', 'Applies to', 'The gate stops it if', 'What happens instead'],
    gates.map(({ id, row = '', about, asks, action }) => {
      return [String(row), `\`${id}\``, aboutOf(about), asks, outcomeOf({ id, action })];
    }),
  ),
  'gates of a run': table(
    ['Gate', 'The change is withheld if'],
    runGates.map(({ id, asks }) => [`\`${id}\``, asks]),
  ),
};

function aboutOf(about: readonly Rule['action'][]): string {
  const isAll = about.length === Object.keys(actions).length;
  return isAll ? 'everything' : about.map((action) => action.replace('_', ' ')).join(', ');
}
