/** Reports opt-outs to a file with one JSON object per line. */
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { fileReturns } from '../shared/files/file-write-back.ts';
import type { WriteBack } from '../write-back.ts';
import type { NdjsonReturnsOptions } from './options.ts';

export function ndjsonReturns({ path }: NdjsonReturnsOptions): WriteBack {
  return fileReturns(path, ({ id, email, crmId, channel, cause, after, by }: OptOutReport) =>
    JSON.stringify({
      return: id,
      email,
      crmId: crmId === '' ? null : crmId,
      channel,
      cause,
      after: after === null ? null : new Date(after).toISOString(),
      by: new Date(by).toISOString(),
    }),
  );
}
