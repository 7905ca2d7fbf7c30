/** Reads a sample from a database. A password is never written: `${DATABASE_URL}` stands for it. */
import { resolve } from 'node:path';
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { listed, quoted } from '../../../sources/shared/field-suggestions.ts';
import { absoluteAddress, placeOf } from '../../../sources/sql/drivers/database-address.ts';
import { sqlOptions } from '../../../sources/sql/options.ts';
import { listTables, sampleTable } from '../../../sources/sql/table-sample.ts';
import { isSqlite } from './file-sample.ts';
import { collecting, mostSampled, type Sample, type SourceRequest } from './sample.ts';
import { withVariables } from './secrets.ts';
import { Undecided } from './undecided.ts';

const variable = 'DATABASE_URL';

/** Throws Undecided if no table is named, with the tables there are. */
export async function sqlSample({ source, table, env, signal }: SourceRequest): Promise<Sample> {
  const given = isSqlite(source) && !/^sqlite:/i.test(source) ? `sqlite:${source}` : source;
  const url = absoluteAddress(withVariables(given, env), (path) => resolve(path));
  const place = placeOf(url);
  if ('reason' in place) throw new Invalid(`the address ${place.reason}`, { fix: place.fix ?? '' });
  const around = { clock: systemClock, signal };
  const options = sqlOptions.parse({ type: 'sql', url, table: table ?? 'none' });
  if (table === undefined) {
    const tables = await listTables(options, around);
    const [first = 'NAME'] = tables;
    throw new Undecided('it is not said which table holds the people', {
      fix: `add --table ${quoted(first)}, or another one; tables found: ${listed(tables)}`,
      question: { about: 'table', among: tables },
    });
  }
  const rows = await sampleTable(options, { table, most: mostSampled }, around);
  const collected = collecting();
  collected.add(rows);
  const isWhole = rows.length < mostSampled;
  const sampled = { origin: table, ...collected.end(), flaw: undefined, isWhole };
  if (place.system === 'sqlite') {
    return { options: { type: 'sql', table }, file: place.path, ...sampled };
  }
  const isSecret = source === url && place.password !== undefined;
  const written = isSecret ? `\${${variable}}` : source;
  return {
    options: { type: 'sql', url: written, table },
    named: written,
    ...(isSecret && { env: { [variable]: url } }),
    ...sampled,
  };
}
