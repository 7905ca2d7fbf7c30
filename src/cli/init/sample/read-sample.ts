/** Reads a sample of the source that the user names: a file, an address, or a CRM. */
import { Invalid } from '../../../domain/errors.ts';
import { hubspotSample, salesforceSample } from './crm-sample.ts';
import { fileSample } from './file-sample.ts';
import { httpSample } from './http-sample.ts';
import type { Sample, SourceRequest } from './sample.ts';
import { withVariables } from './secrets.ts';
import { sqlSample } from './sql-sample.ts';

/** Throws Invalid if the source cannot be read, or holds no records. */
export async function readSample(request: SourceRequest): Promise<Sample> {
  const sample = await readerFor(request)(request);
  if (sample.records > 0) return sample;
  throw new Invalid(`${sample.origin}: it has no records`, { fix: 'name another source' });
}

/** Returns the function that reads a source, by the form of its name. */
function readerFor({ source, env }: SourceRequest): (request: SourceRequest) => Promise<Sample> {
  const name = source.startsWith('${') ? withVariables(source, env) : source;
  if (/^https?:/i.test(name)) return httpSample;
  if (/^(postgres(ql)?|mysql|mariadb):/i.test(name)) return sqlSample;
  if (name === 'hubspot') return hubspotSample;
  if (name === 'salesforce') return salesforceSample;
  return async ({ signal }) => fileSample(source, signal);
}
