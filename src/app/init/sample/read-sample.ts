/** Reads a sample of the source that the user names: a file, an address, or a CRM. */
import { Invalid } from '../../../domain/errors.ts';
import { hubspotSample, salesforceSample } from './crm-sample.ts';
import { fileSample, isSqlite } from './file-sample.ts';
import { httpSample } from './http-sample.ts';
import type { Sample, SourceRequest } from './sample.ts';
import { withVariables } from './secrets.ts';
import { sqlSample } from './sql-sample.ts';

/** Throws Invalid if most of the source cannot be read, or if it holds no records. */
export async function readSample(request: SourceRequest): Promise<Sample> {
  const { source, env, table, header = [] } = request;
  const name = source.startsWith('${') ? withVariables(source, env) : source;
  const isDatabase = /^(postgres(ql)?|mysql|mariadb|sqlite):/i.test(name);
  let reader = async ({ signal }: SourceRequest): Promise<Sample> => fileSample(source, signal);
  if (/^https?:/i.test(name)) reader = httpSample;
  else if (isDatabase || (table !== undefined && isSqlite(name))) reader = sqlSample;
  else if (name === 'hubspot') reader = hubspotSample;
  else if (name === 'salesforce') reader = salesforceSample;
  if (table !== undefined && reader !== sqlSample) {
    throw new Invalid('--table belongs to a database', { fix: 'remove it, or name a database' });
  }
  if (header.length > 0 && reader !== httpSample) {
    throw new Invalid('--header belongs to an HTTP API', { fix: 'remove it, or name an address' });
  }
  const sample = await reader(request);
  const { unread } = sample;
  if (unread) throw new Invalid(`${sample.origin}: ${unread.why}`, { fix: unread.fix });
  if (sample.records > 0) return sample;
  throw new Invalid(`${sample.origin}: it has no records`, { fix: 'name another source' });
}
