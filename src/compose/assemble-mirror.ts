/** Builds a runnable mirror from a configuration. It is the one place where all parts meet. */
import { randomBytes, hash } from 'node:crypto';
import { renderProblem } from '../domain/errors.ts';
import { type Config, absenceRulesOf } from '../config/config.ts';
import { byGuard } from '../domain/guard-classes.ts';
import type { ConnectedPlatform, Platform, Random, Clock } from '../platform/platform.ts';
import { type Lease, takeLease } from '../store/database/writer-lease.ts';
import { isDamage, setAside } from '../store/damage-check.ts';
import { type AuditTrail, knownHead, noteGap, rememberHead } from '../store/memory/audit-trail.ts';
import {
  type Memory,
  memoryWithoutFile,
  openMemory,
  readMemory,
  refuseLost,
} from '../store/memory/memory.ts';
import { recordOutages } from '../store/health-file.ts';
import { lookInto, openForRun, openSnapshot } from '../store/open-snapshot.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { RequestLog } from '../store/memory/request-log.ts';
import { createPersonLocks } from '../engine/context/person-locks.ts';
import type {
  Account,
  Mirror,
  MirrorContacts,
  MirrorTemplates,
} from '../engine/context/mirror-context.ts';
import { boundMemory } from '../engine/context/do-not-contact-binding.ts';
import { connect, logRequests, watchedTransport } from './platform-connection.ts';
import { refusePaused } from './mirror-files.ts';
import type { Assembled, Shell } from './process-shell.ts';
import { loadSources, type Sources, loadMap } from './source-registry.ts';
import { systemClock } from '../http/system-clock.ts';
import { timesBy } from '../engine/context/platform-knowledge.ts';
import type { BothTimes } from '../domain/clock.ts';
import { connectContacts } from '../records/contact/connect-contacts.ts';
import { connectTemplates } from '../records/template/connect-templates.ts';
import type { Source } from '../sources/source.ts';

/** The maximum, then a smaller one: what is on a page border at first is inside a page then. */
const pageSizes = [100, 83] as const;

interface MirrorAccess {
  /** Takes the lease. If there is no snapshot or memory, creates it. */
  writes: boolean;
  /** Opens the mirror although it is paused; the caller refuses what a pause forbids. */
  whilePaused?: boolean;
  /** Accepts the loss of what a memory had that is missing or unusable. */
  acceptLostLedger?: boolean;
  /** Stands in for what a rehearsal must not touch. */
  standIns?: StandIns;
}

/**
 * What a rehearsal uses instead of this machine's clock and chance, the platform and the CRM. Such
 * a mirror logs no requests, keeps no audit log, and reports nothing to the CRM.
 */
interface StandIns {
  clock: Clock;
  random: Random;
  connect(config: Config, shell: Shell): ConnectedPlatform;
  /** Returns what to read instead of a source; `name` is the same for equal sources. */
  sourceFor(name: string, source: Source): Source;
}

/**
 * The caller closes the mirror with the error if there was one, so that a damaged snapshot is set
 * aside. Without `writes`, no file is created, and a damaged snapshot throws Invalid. Throws Busy.
 */
export async function assemble(
  config: Config,
  shell: Shell,
  access: MirrorAccess,
): Promise<Assembled> {
  const held = access.writes ? shell.held?.() : undefined;
  if (held) return held;
  const sources = await loadSources(config);
  const opened = access.writes ? hold(config, access) : lookOn(config);
  const close = async (failure?: unknown): Promise<void> => {
    const { log, memory, snapshot, lease, platform } = opened;
    try {
      log?.close();
      memory.close();
      snapshot.close();
      if (lease && isDamage(failure)) {
        const reason = sayAside(config.snapshot, setAside(config.snapshot, systemClock.now()));
        const fix = 'run again: that begins anew';
        shell.note(`crm-mirror: ${renderProblem({ reason, fix })}`);
      }
    } finally {
      lease?.release();
      await platform?.close();
    }
  };
  try {
    return { ...connected(config, shell, { ...access, sources, opened }), close };
  } catch (error) {
    await close(error);
    throw error;
  }
}

/** Notes in `opened` what has to be closed. */
function connected(
  config: Config,
  shell: Shell,
  { writes, standIns, sources, opened }: MirrorAccess & { sources: Sources; opened: Opened },
) {
  const { snapshot, memory, lease, notes } = opened;
  for (const note of notes) shell.note(`crm-mirror: ${note}`);
  const known = boundMemory(snapshot.meta);
  if (known !== undefined && known.id !== memory.id) {
    shell.note(
      'crm-mirror: the memory of this snapshot is given up, and the one that is there, or a new one, ' +
        'takes its place: of later opt-outs and erasures it knows only what the snapshot and the ' +
        'platform still show',
    );
  }
  const { clock = systemClock, random = Math.random } = standIns ?? {};
  const audit = lease && !standIns ? auditTrailOf(config, opened, shell.note) : undefined;
  const isRun = writes && !standIns;
  const log = isRun ? logRequests(config, memory, shell) : undefined;
  opened.log = log;
  const requestLog = log?.writer();
  const outages = isRun
    ? (shell.outages ?? recordOutages(config.snapshot, systemClock.now))
    : undefined;
  const transport = outages && watchedTransport(config.platform, outages);
  const connecting = { record: requestLog?.record, ...(transport && { transport }) };
  const platform = standIns ? standIns.connect(config, shell) : connect(config, shell, connecting);
  opened.platform = platform;
  const times = timesBy({ clock, platformNow: platform.platformNow, snapshot });
  const mirror: Mirror = {
    name: config.mirror,
    ...connectRecords(config, { platform, sources, times }, standIns),
    returns: standIns ? undefined : sources.returns?.(),
    snapshot,
    account: accountOf(config, platform),
    memory,
    doNotContact: memory.list(),
    approvers: config.approvers,
    audit,
    locks: createPersonLocks(),
    notes,
    clock,
    random,
    timeoutMs: config.platform.timeoutMs,
    pageSizes,
    keepMs: config.keepMs,
    guards: byGuard((_, { configKey }) => config.guards[configKey]),
    rules: config.rules,
    windows: config.windows,
    canary: config.policy.canary,
    timezone: config.schedule?.timezone ?? 'UTC',
    sample: config.contacts?.sample,
    reserve: config.platform.reserve,
    outages,
    requestLog,
    requests: platform.requests,
    limits: platform.limits,
    platformNow: platform.platformNow,
  };
  const shared = { platform, log, sources, memory };
  return { mirror, platform, sibling: () => besideOf(config, mirror, shared) };
}

/** Builds the mirror again for a run beside others in this process: its requests come first. */
function besideOf(
  config: Config,
  mirror: Mirror,
  shared: {
    platform: ConnectedPlatform;
    log: RequestLog | undefined;
    sources: Sources;
    memory: Memory;
  },
): Assembled {
  const requestLog = shared.log?.writer();
  const platform = shared.platform.urgent(requestLog?.record);
  const snapshot = mirror.snapshot.sibling();
  const times = timesBy({ ...mirror, snapshot });
  const own: Mirror = {
    ...mirror,
    snapshot,
    doNotContact: shared.memory.list(),
    ...connectRecords(config, { platform, sources: shared.sources, times }),
    account: accountOf(config, platform),
    requestLog,
    requests: platform.requests,
  };
  return {
    mirror: own,
    platform,
    sibling: () => besideOf(config, mirror, shared),
    close: async () => snapshot.close(),
  };
}

interface Opened {
  snapshot: Snapshot;
  memory: Memory;
  lease?: Lease;
  log?: RequestLog | undefined;
  platform?: ConnectedPlatform;
  notes: string[];
}

/** If anything fails, closes all of it again. */
function hold(
  config: Config,
  { acceptLostLedger = false, whilePaused = false, standIns }: MirrorAccess,
): Opened {
  const lease = takeLease(config.snapshot);
  let snapshot: Snapshot | undefined;
  try {
    const admit = ({ meta }: Snapshot) => whilePaused || refusePaused(meta, config);
    const isThrowaway = standIns !== undefined;
    const opened = openForRun(config.snapshot, { at: systemClock.now(), admit, isThrowaway });
    ({ snapshot } = opened);
    snapshot.fence();
    const reason = 'this run begins anew: it adopts and records who is there, as a first run does';
    const anew = renderProblem({ reason, fix: 'keep that file until all is well' });
    const { aside } = opened;
    const notes = aside === undefined ? [] : [`${sayAside(config.snapshot, aside)}; ${anew}`];
    const known = boundMemory(snapshot.meta);
    const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');
    const memory = openMemory(config.memory, { known, acceptLost: acceptLostLedger, randomHex });
    return { snapshot, memory, lease, notes };
  } catch (error) {
    snapshot?.close();
    lease.release();
    throw error;
  }
}

function auditTrailOf(
  { audit: { keepMs } }: Config,
  { memory: { log }, snapshot: { meta, transaction } }: Opened,
  note: (line: string) => void,
): AuditTrail {
  const gap = noteGap(log, knownHead(meta), systemClock.now());
  if (gap !== undefined) {
    note(`crm-mirror: ${gap}`);
    // Otherwise each run would say it again.
    transaction(() => rememberHead(meta, log));
  }
  return { log, keepMs };
}

function lookOn({ snapshot: path, memory: place }: Config): Opened {
  const now = systemClock.now();
  const snapshot = lookInto(path, { checkedAt: now }) ?? openSnapshot(path, { inMemory: true });
  try {
    const memory = readMemory(place, boundMemory(snapshot.meta));
    if (!memory) refuseLost(place);
    return { snapshot, memory: memory ?? memoryWithoutFile(), notes: [] };
  } catch (error) {
    snapshot.close();
    throw error;
  }
}

function sayAside(path: string, aside: string): string {
  return `${path}: the snapshot was damaged and is set aside as ${aside}`;
}

/** Returns the account that the snapshot belongs to. */
export function accountOf({ mirror, platform: of }: Config, platform: Platform): Account {
  return { mirror, url: of.url, apiKey: of.apiKey, platform };
}

/** Connects the people and the templates of a mirror with their sources and the platform. */
export function connectRecords(
  config: Config,
  { platform, sources, times }: { platform: Platform; sources: Sources; times(): BothTimes },
  standIns?: StandIns,
): { contacts?: MirrorContacts; templates?: MirrorTemplates } {
  const { contacts, templates, policy } = config;
  const { sourceFor = (_: string, source: Source) => source } = standIns ?? {};
  const connected: ReturnType<typeof connectRecords> = {};
  if (contacts && sources.contacts) {
    const absence = absenceRulesOf(config);
    const options = { fields: contacts, policy, absence, platform: platform.contacts, times };
    const { source, id, unsubscribed, channels, map } = contacts;
    const optOuts = channels.flatMap(({ subscription: stated }) =>
      typeof stated === 'object' && 'optOut' in stated ? [stated] : [],
    );
    const name = JSON.stringify([source, id, unsubscribed, optOuts, map]);
    // All settings that affect how a record is read, with the code of the mapping.
    const read = { ...contacts, map: map === undefined ? undefined : loadMap(map).hash };
    connected.contacts = {
      ...connectContacts(options),
      source: sourceFor(name, sources.contacts()),
      manner: hash('sha256', JSON.stringify(read)).slice(0, 16),
    };
  }
  if (templates && sources.templates) {
    const testTo = templates.canary?.to;
    connected.templates = {
      ...connectTemplates({ policy, platform: platform.templates, testTo }),
      source: sourceFor(JSON.stringify(templates.source), sources.templates()),
    };
  }
  return connected;
}
