/** Asks where the data is until a sample of it can be read. */
import { existsSync } from 'node:fs';
import { isExpected, renderProblem } from '../../../domain/errors.ts';
import type { Shell } from '../../../compose/process-shell.ts';
import type { Flags } from '../init-flags.ts';
import { readSample } from '../sample/read-sample.ts';
import type { Sample } from '../sample/sample.ts';
import { Undecided } from '../sample/undecided.ts';
import type { Talk } from './talk.ts';

/** The flags that name the source, and its sample. */
export interface Located {
  flags: Flags & { source: string };
  sample: Sample;
}

/** Asks for the source, unless the flags name one that can be read. */
export async function locate(flags: Flags, talk: Talk, shell: Shell): Promise<Located> {
  const { stop: signal, env } = shell;
  const { source } = flags;
  if (source === undefined) {
    return locate({ ...flags, ...(await askSource(talk)) }, talk, shell);
  }
  talk.show([`Reading ${source.replace(/:[^:@/]*@/, ':…@')} …`]);
  try {
    const sample = await readSample({ ...flags, source, env, signal });
    return { flags: { ...flags, source }, sample };
  } catch (error) {
    signal.throwIfAborted();
    if (!isExpected(error)) throw error;
    if (error instanceof Undecided && error.question.about === 'table') {
      const tables = error.question.among.map((value) => ({ value, label: value }));
      const table = await talk.choose('Which table holds the people?', tables);
      return locate({ ...flags, table }, talk, shell);
    }
    talk.warn(error.problems.map(renderProblem).join('\n'));
    const { source: _source, table: _table, header: _header, ...rest } = flags;
    return locate(rest, talk, shell);
  }
}

const places = [
  { value: 'file', label: 'a file', hint: 'CSV, Excel, JSON lines, SQLite' },
  { value: 'sql', label: 'a database', hint: 'PostgreSQL, MySQL, MariaDB' },
  { value: 'http', label: 'an HTTP API', hint: 'a list of people as JSON' },
  { value: 'hubspot', label: 'HubSpot', hint: 'needs HUBSPOT_TOKEN' },
  { value: 'salesforce', label: 'Salesforce', hint: 'needs SALESFORCE_URL and an app' },
] as const;

async function askSource(talk: Talk): Promise<Pick<Flags, 'source' | 'header'>> {
  const place = await talk.choose('Where are the people?', places);
  if (place === 'file') {
    const fault = (path: string) => (existsSync(path) ? undefined : `there is no file ${path}`);
    return { source: await talk.ask('Which file?', { example: 'people.csv', fault }) };
  }
  if (place === 'sql') {
    const example = 'postgres://USER@HOST/DATABASE';
    const hint = 'A password is not written: name it ${DATABASE_URL} to read it from there.';
    talk.show([hint]);
    return { source: await talk.ask('What is the address of the database?', { example }) };
  }
  if (place !== 'http') return { source: place };
  const example = 'https://crm.example/api/contacts';
  const source = await talk.ask('What is the address of the list?', { example });
  if (!(await talk.agree('Does it need a header, such as Authorization?'))) return { source };
  const header = await talk.ask('Which header? Take its secret from the environment.', {
    initial: 'Authorization: Bearer ${CRM_TOKEN}',
  });
  return { source, header: [header] };
}
