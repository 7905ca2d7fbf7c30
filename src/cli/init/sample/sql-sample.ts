/** Reads a sample from a database. A password is never written: `${DATABASE_URL}` stands for it. */
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { listed, quoted } from '../../../sources/shared/field-suggestions.ts';
import { placeOf } from '../../../sources/sql/drivers/database-address.ts';
import { sqlOptions } from '../../../sources/sql/options.ts';
import { listTables, sampleTable } from '../../../sources/sql/table-sample.ts';
import { collecting, mostSampled, type Sample, type SourceRequest } from './sample.ts';
import { withVariables } from './secrets.ts';
import { Undecided } from './undecided.ts';

const variable = 'DATABASE_URL';

/** Throws Undecided if no table is named, with the tables there are. */
export async function sqlSample({ source, table, env, signal }: SourceRequest): Promise<Sample> {
  const url = withVariables(source, env);
  const place = placeOf(url);
  if ('reason' in place) throw new Invalid(`the address ${place.reason}`, { fix: place.fix ?? '' });
  const around = { clock: systemClock, signal };
  const options = sqlOptions.parse({ type: 'sql', url, table: table ?? 'none' });
  const tables = await listTables(options, around);
  if (table === undefined) throw noTable(tables);
  const rows = await sampleTable(options, { table, most: mostSampled }, around);
  const collected = collecting();
  collected.add(rows);
  const isSecret = source === url && place.system !== 'sqlite' && place.password !== undefined;
  const written = isSecret ? `\${${variable}}` : source;
  return {
    options: { type: 'sql', url: written, table },
    origin: table,
    named: written,
    ...(isSecret && { env: { [variable]: url } }),
    ...collected.end(),
    flaw: undefined,
    isWhole: rows.length < mostSampled,
  };
}

function noTable(tables: readonly string[]): Undecided {
  const [first = 'NAME'] = tables;
  return new Undecided('it is not said which table holds the people', {
    fix: `add --table ${quoted(first)}, or another one; tables found: ${listed(tables)}`,
    question: { about: 'table', among: tables },
  });
}
