/** Reads a sample of the source that the user names: a file, an address, or a CRM. */
import { Invalid } from '../../../domain/errors.ts';
import { fileSample } from './file-sample.ts';
import type { Sample } from './sample.ts';

/** Where the data is, and what is needed to read it. */
export interface SourceRequest {
  source: string;
  table?: string | undefined;
  header?: readonly string[] | undefined;
  /** The environment variables, for secrets. */
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

/** Throws Invalid if the source cannot be read, or holds no records. */
export async function readSample({ source, signal }: SourceRequest): Promise<Sample> {
  const sample = await fileSample(source, signal);
  if (sample.records > 0) return sample;
  throw new Invalid(`${sample.origin}: it has no records`, { fix: 'export it again' });
}
