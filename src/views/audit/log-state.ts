/** Tells whether the audit log is the one that the snapshot knows, without verifying all of it. */
import { storedFault, faultOf, knownHead } from '../../store/audit/audit-trail.ts';
import type { AuditLog } from '../../store/audit/audit-log.ts';
import type { Config } from '../../config/config.ts';
import { Busy, Invalid } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';

type Place = Pick<Config, 'audit' | 'ledger'>;

/** Returns the file of the log, and what is wrong with it; `audit verify` checks the rest. */
export function auditLogState({
  config,
  snapshot,
}: {
  config: Place;
  snapshot: Pick<Snapshot, 'meta'> | undefined;
}): { file: string; fault: string | null } {
  return { file: config.audit.path, fault: snapshot ? faultIn(config, snapshot) : null };
}

function faultIn(config: Place, { meta }: Pick<Snapshot, 'meta'>): string | null {
  const known = knownHead(meta);
  let log: AuditLog | undefined;
  const fault = faultOf(() => void (log = auditLogOf(config)));
  if (fault) return fault instanceof Busy ? null : fault.message;
  const end = log && { id: log.id, seq: log.head().seq };
  log?.close();
  if (!known) return storedFault(meta) ?? null;
  const last = `the snapshot knows entry ${withCommas(known.seq)}`;
  if (!end) return `it is lost: ${last}`;
  if (end.id === known.log && end.seq >= known.seq) return storedFault(meta) ?? null;
  return `entries are missing: it ends at entry ${withCommas(end.seq)}, and ${last}`;
}

/**
 * Says that the log is lost, and returns the exit code. Throws Invalid if there never was one, as
 * far as the snapshot knows.
 */
export function withoutLog(
  { audit }: Pick<Config, 'audit'>,
  snapshot: Pick<Snapshot, 'meta'> | undefined,
  note: (line: string) => void,
): number {
  const known = snapshot && knownHead(snapshot.meta);
  if (!known) {
    throw new Invalid(`${audit.path}: there is no audit log yet`, {
      fix: 'the first run that writes makes it; if there was one, restore it',
    });
  }
  const last = withCommas(known.seq);
  note(`crm-mirror: ${audit.path}: the audit log is lost: the snapshot knows entry ${last}`);
  return exitCode('failed');
}
