/** Lists the rules and gates of consent. */
import { gates } from '../../../records/contact/consent/gates.ts';
import { rules } from '../../../records/contact/consent/rules.ts';
import { type Html, prose } from '../../view/page.ts';
import { type Cell, numbers, table } from '../../view/table.ts';

/** Returns every rule and gate in order. `said` fills the last column, by the id of a rule. */
export function rulesTable(last: string, said: (id: string) => Cell): Html {
  return table(
    [numbers('No.'), 'It matches if', last],
    [...rules, ...gates].map(({ id, row, asks }) => [row ?? '', prose(asks), said(id)]),
  );
}
