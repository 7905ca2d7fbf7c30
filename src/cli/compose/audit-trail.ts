/** Opens the audit log of a configuration. */
import { randomBytes } from 'node:crypto';
import { openAuditLog, readAuditLog } from '../../audit/audit-file.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import type { AuditTrail } from '../../audit/audit-trail.ts';
import { signingKey } from '../../audit/signing-key.ts';
import type { Config } from '../../config/config.ts';
import { isExpected, renderProblem } from '../../domain/errors.ts';
import { keyFor, readKey } from '../../do-not-contact/list-key.ts';

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** The purpose for which the do-not-contact list's key gives a key that finds people. */
const purpose = 'crm-mirror audit 1';

type Place = Pick<Config, 'audit' | 'ledger'>;

/**
 * Opens the log for writing, and creates it and its key if there are none. If that is not possible,
 * says so and returns undefined: runs then keep their entries in the snapshot.
 */
export function auditTrailOf(
  { audit, ledger }: Place,
  note: (line: string) => void,
): AuditTrail | undefined {
  const key = readKey(ledger.keyFile);
  if (key === undefined) return undefined;
  try {
    const log = openAuditLog({ path: audit.path, secret: keyFor(purpose, key), randomHex });
    try {
      return { log, key: signingKey(audit.keyFile), keepMs: audit.keepMs };
    } catch (error) {
      log.close();
      throw error;
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    const reason = `the audit log cannot be opened (${error.message}); its entries wait in the snapshot`;
    note(`crm-mirror: ${renderProblem({ reason, fix: 'mend that: the next run writes them' })}`);
    return undefined;
  }
}

/** Opens the log for reading; undefined if there is none, or no key to find people. */
export function auditLogOf({ audit, ledger }: Place): AuditLog | undefined {
  const key = readKey(ledger.keyFile);
  if (key === undefined) return undefined;
  return readAuditLog({ path: audit.path, secret: keyFor(purpose, key) });
}
