/** Opens the audit log of a configuration. */
import { randomBytes } from 'node:crypto';
import { faultOf, knownHead, noteGap, rememberHead, sayFault } from '../store/audit/audit-trail.ts';
import { openAuditLog, readAuditLog, type AuditLog } from '../store/audit/audit-log.ts';
import { type SigningKey, signingKey } from '../store/audit/signing-key.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import type { Config } from '../config/config.ts';
import { renderProblem } from '../domain/errors.ts';
import { keyFor, readKey } from '../store/do-not-contact/list-key.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Snapshot } from '../store/snapshot.ts';

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** The purpose for which the do-not-contact list's key gives a key that finds people. */
const purpose = 'crm-mirror audit 1';

type Place = Pick<Config, 'audit' | 'ledger'>;

type Opened = Pick<Mirror, 'audit' | 'auditFault'>;

/** Opens the log for writing on demand. Says once for each reason that it cannot be opened. */
export function keptTrail(
  place: Place,
  snapshot: Pick<Snapshot, 'meta' | 'transaction'>,
  note: (line: string) => void,
) {
  let opened: Opened = {};
  const said = new Set<string>();
  const sayOnce = (line: string): void => {
    if (!said.has(line)) note(line);
    said.add(line);
  };
  return {
    /** Opens the log, unless it is open: a worker lives longer than what prevents it. */
    open(): Opened {
      if (!opened.audit) opened = auditTrailOf(place, snapshot, sayOnce);
      return opened;
    },
    close: () => opened.audit?.log.close(),
  };
}

/** The log of a process that writes. */
export type KeptTrail = ReturnType<typeof keptTrail>;

/**
 * Opens the log for writing, and creates it and its key if there are none. If the snapshot knows a
 * later end than the log has, an entry says so. If the log cannot be opened, says so and returns
 * why: runs then keep their entries in the snapshot.
 */
function auditTrailOf(
  { audit, ledger }: Place,
  { meta, transaction }: Pick<Snapshot, 'meta' | 'transaction'>,
  note: (line: string) => void,
): Opened {
  const key = readKey(ledger.keyFile);
  if (key === undefined) return {};
  let log: AuditLog | undefined;
  let signing: SigningKey | undefined;
  const fault = faultOf(() => {
    // Before the log, which would stay open if this throws.
    signing = signingKey(audit.keyFile);
    log = openAuditLog({ path: audit.path, secret: keyFor(purpose, key), randomHex });
    const opened = log;
    const gap = noteGap(opened, knownHead(meta), systemClock.now());
    if (gap === undefined) return;
    note(`crm-mirror: ${gap}`);
    // Otherwise each run would say it again.
    transaction(() => rememberHead(meta, opened));
  });
  if (!fault && log && signing) return { audit: { log, key: signing, keepMs: audit.keepMs } };
  log?.close();
  const { message: auditFault = 'unknown' } = fault ?? {};
  note(`crm-mirror: ${renderProblem(sayFault(`cannot be opened (${auditFault})`))}`);
  return { auditFault };
}

/** Opens the log for reading; undefined if there is none, or no key to find people. */
export function auditLogOf({ audit, ledger }: Place): AuditLog | undefined {
  const key = readKey(ledger.keyFile);
  if (key === undefined) return undefined;
  return readAuditLog({ path: audit.path, secret: keyFor(purpose, key) });
}
