/**
 * Serves the mirrors of a folder until it is asked to stop: the folder (mirror-folder.ts), its
 * mirrors (served-mirrors.ts) and their server.
 */
import { randomBytes } from 'node:crypto';
import { cpus, hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { shareLinks } from '../http/rate-limit/shared/redis-connection.ts';
import { systemClock } from '../http/system-clock.ts';
import { type Shell, stopped } from '../compose/process-shell.ts';
import { drainNode, readFleet } from '../compose/fleet/fleet.ts';
import { createFleetMember, type FleetMember } from '../compose/fleet/fleet-member.ts';
import { shareConnections, type SharedConnections } from '../compose/queues/shared-connections.ts';
import type { ConsoleFleet } from '../console/pages/mirrors.ts';
import {
  type FolderFiles,
  isRefused,
  openMirrorFolder,
  workable,
  type Workable,
} from './mirror-folder.ts';
import { createProbe } from './mirror-pulse.ts';
import { serve } from './mirror-service.ts';
import { createSharedCauses } from './notifications/shared-causes.ts';
import { createServedMirrors, type ServedMirrors } from './served-mirrors.ts';
import { createCapacity, runSlots } from './worker-capacity.ts';
import { openServer, type WorkerServer } from './worker-server.ts';

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

/**
 * Serves the folder, and calls `end` before it closes, which interrupts what `stop` does. Throws
 * Invalid if the folder cannot be read, or its server cannot listen. A file that cannot be used
 * stops only its mirror.
 */
export async function serveFolder(path: string, outer: Shell, end: () => void): Promise<void> {
  const shell = { ...outer, openLink: shareLinks() };
  const folder = openMirrorFolder({
    folder: path,
    clock: systemClock,
    load: (file) => workable(loadConfig(file, shell.env)),
    note: shell.note,
  });
  const host = hostname();
  const connections = shareConnections(`${host}-${randomHex(4)}`, systemClock);
  const shared = {
    probe: createProbe(systemClock),
    causes: createSharedCauses(systemClock.monotonic),
  };
  const capacity = createCapacity(systemClock, createTimeCheck);
  let server: WorkerServer | undefined;
  const fleets = createFleets(shell, connections, host, (isLent) => mirrors.release(isLent));
  const mirrors: ServedMirrors = createServedMirrors({
    shell,
    serve: (config) =>
      serve(config, shell, {
        ...shared,
        acceptLost: false,
        connections: connections.to(config.redis),
        turns: fleets.to(config.redis),
        capacity,
        // The folder tells of a changed file, or of a changed key.
        load: () => config,
        ended: (summary) => server?.ended(config.mirror, summary),
      }),
  });
  // It is said once for each file that it asks for another server than the one that listens.
  const { note } = shell;
  const said = new Set<string>();
  const differs = (configs: readonly Config[], asked: Config | undefined): void => {
    for (const { file, server } of configs) {
      const text = JSON.stringify(server);
      if (!server || text === JSON.stringify(asked?.server)) said.delete(file);
      else if (!said.has(file)) {
        said.add(file);
        note(
          `crm-mirror: ${file}: asks for another server than ${asked?.file} → restart the worker`,
        );
      }
    }
  };
  let asked: Config | undefined;
  const become = async (files: FolderFiles): Promise<void> => {
    mirrors.become(files);
    const configs = [...files.values()].flatMap((one) => (isRefused(one) ? [] : [one]));
    fleets.join(configs);
    asked ??= configs.find((one) => one.server);
    differs(configs, asked);
    if (server || !asked) return;
    server = openServer(asked, { ...mirrors, fleets: fleets.known }, shell);
    await server?.listen();
  };
  const failed = Promise.withResolvers<never>();
  try {
    await become(await folder.read());
    const followed = folder.follow((files) => {
      become(files).catch((error: unknown) => failed.reject(error));
    }, shell.stop);
    await Promise.race([stopped(shell.stop), failed.promise, followed]);
    await followed;
  } finally {
    failed.promise.catch(() => undefined);
    end();
    // The others know at once that they get the mirrors.
    await fleets.quit();
    await Promise.all([server?.close(), mirrors.close()]);
    connections.close();
  }
}

function createFleets(
  shell: Shell,
  connections: SharedConnections,
  host: string,
  moved: (isLent: (mirror: string) => boolean) => void,
) {
  const known = new Map<string, FleetMember & { fleet: ConsoleFleet }>();
  const to = (url: string): FleetMember => {
    const { node, quick } = connections.to(url);
    const before = known.get(url);
    if (before) return before;
    const asking = quick();
    const member = createFleetMember({
      node,
      quick: asking,
      clock: systemClock,
      randomHex,
      host,
      slots: runSlots.most,
      note: shell.note,
      moved,
    });
    const fleet: ConsoleFleet = {
      node: node.name,
      read: async () => readFleet(asking),
      drain: async (name, isDraining) => drainNode(asking, name, isDraining),
    };
    known.set(url, { ...member, fleet });
    return member;
  };
  return {
    to,
    known: () => [...known.values()].map(({ fleet }) => fleet),
    join(configs: readonly Workable[]): void {
      const urls = new Set([...known.keys(), ...configs.map(({ redis }) => redis)]);
      for (const url of urls) {
        const own = configs.filter(({ redis }) => redis === url);
        to(url).join(own);
      }
    },
    async quit() {
      await Promise.all([...known.values()].map(async (one) => one.quit()));
    },
  };
}

/** The largest share of the time in which a process, or a machine, that has time left is busy. */
const busyShare = 0.7;

/**
 * Returns a function that returns whether the process and its machine had time left since the last
 * call. A process that has to wait for a core looks idle to itself.
 */
function createTimeCheck(): () => boolean {
  let last = timesNow();
  return () => {
    const now = timesNow();
    const { utilization } = performance.eventLoopUtilization(now.own, last.own);
    const total = now.total - last.total;
    const idle = total === 0 ? 0 : (now.idle - last.idle) / total;
    last = now;
    return utilization < busyShare && idle > 1 - busyShare;
  };
}

function timesNow() {
  const times = cpus().map((one) => one.times);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  const total = times.reduce(
    (sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq,
    idle,
  );
  return { own: performance.eventLoopUtilization(), idle, total };
}
