/**
 * Serves the mirrors of a folder until it is asked to stop. Their files (mirror-folder.ts) come,
 * change and go meanwhile:
 *
 *   the file is        the mirror is     result
 *   usable             not served        served
 *   another one now    served            leaves after its current run, and is served anew
 *   refused            served            leaves after its current run; its schedule stays in Redis
 *   gone               served            leaves after its current run, with its schedule
 *   usable             served, but       leaves after its current run, and waits for its turn
 *                      placed elsewhere
 *   usable             failed            closed; served again a minute later, or when the file
 *                                        changes
 *
 * The steps of one file are taken one after the other, towards what the folder showed last.
 */
import { createSharedCauses } from './notifications/notifier.ts';
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
  type RefusedFile,
} from './mirror-folder.ts';
import { createProbe } from './mirror-pulse.ts';
import { serve, type Served } from './mirror-service.ts';
import { createCapacity } from './worker-capacity.ts';
import { openServer, type WorkerServer } from './worker-server.ts';
import pLimit from 'p-limit';
import { explain } from '../compose/output/failure-report.ts';

/** Creates what the mirrors of a worker share. The caller closes the connections. */
export function shareParts({ note }: Shell) {
  return {
    connections: shareConnections(
      `${hostname()}-${randomBytes(4).toString('hex')}`,
      systemClock,
      note,
    ),
    probe: createProbe(systemClock),
    causes: createSharedCauses(systemClock.monotonic),
  };
}

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
  const { connections, ...shared } = shareParts(shell);
  const capacity = createCapacity(systemClock, createTimeCheck);
  let server: WorkerServer | undefined;
  const fleets = createFleets(shell, connections, (isLent) => mirrors.release(isLent));
  const mirrors: ReturnType<typeof createServedMirrors> = createServedMirrors(shell, (config) =>
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
  );
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
      host: hostname(),
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

/** Returns whether process and machine had time left: who waits for a core looks idle to itself. */
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

const retryMs = 60_000;

interface Place {
  file: string;
  shown: Workable | RefusedFile | undefined;
  served: Served | undefined;
  isLeaving: boolean;
  failure: string | undefined;
  turn: ReturnType<typeof pLimit>;
}

/** Creates the set. Nothing is served yet. */
function createServedMirrors(shell: Shell, serve: (config: Workable) => Served) {
  const places = new Map<string, Place>();
  const served: Served[] = [];

  /** Moves a place to what the folder shows. Never throws. */
  const move = async (place: Place): Promise<void> => {
    while (!shell.stop.aborted) {
      const { shown } = place;
      const isRefusedNow = shown !== undefined && isRefused(shown);
      const wanted = shown && !isRefused(shown) ? shown : undefined;
      if (place.served?.config === wanted) break;
      if (place.served) {
        const leaving = place.served;
        const changed = isRefusedNow
          ? 'it is stopped once its run has ended'
          : 'its configuration has changed: it is opened anew once its run has ended';
        const why = shown
          ? changed
          : 'its file is gone: it is no longer served once its run has ended';
        shell.note(`crm-mirror: ${leaving.mirror}: ${why}`);
        await leave(place, leaving);
      } else if (wanted) {
        const own = serve(wanted);
        place.served = own;
        place.failure = undefined;
        served.push(own);
        own.failed.catch((error: unknown) => void fail(place, own, error));
      }
    }
    if (!place.shown && !place.served) places.delete(place.file);
  };
  const leave = async (place: Place, leaving: Served): Promise<void> => {
    place.isLeaving = true;
    // Its schedule has to go if the file no longer names the mirror.
    const isOther = ({ shown }: Place): boolean =>
      shown === undefined || (!isRefused(shown) && shown.mirror !== leaving.mirror);
    await leaving.leave(
      () => isOther(place),
      () => !shell.stop.aborted && !isOther(place) && !isRefused(place.shown ?? leaving.config),
    );
    place.isLeaving = false;
    remove(leaving);
    place.served = undefined;
  };
  const fail = async (place: Place, own: Served, error: unknown): Promise<void> => {
    const { text } = explain(error);
    for (const line of text.split('\n')) shell.note(`crm-mirror: ${own.mirror}: ${line}`);
    await place.turn(async () => {
      if (place.served !== own) return;
      remove(own);
      place.served = undefined;
      place.failure = text;
      await own.close();
    });
    await systemClock.sleep(retryMs, shell.stop).catch(() => undefined);
    await place.turn(async () => move(place));
  };
  const remove = (one: Served): void => {
    const at = served.indexOf(one);
    if (at >= 0) served.splice(at, 1);
  };

  return {
    /** The mirrors that are served now. The list changes as they come and go. */
    served,
    refused: (): RefusedFile[] =>
      [...places.values()].flatMap(({ file, shown, failure }) => {
        if (shown && isRefused(shown)) return [shown];
        return failure === undefined ? [] : [{ file, why: failure }];
      }),
    become(files: FolderFiles): void {
      for (const file of new Set([...places.keys(), ...files.keys()])) {
        const place = places.get(file) ?? {
          file,
          shown: undefined,
          served: undefined,
          isLeaving: false,
          failure: undefined,
          turn: pLimit(1),
        };
        places.set(file, place);
        const before = place.shown;
        place.shown = files.get(file);
        if (before === place.shown) continue;
        if (place.shown && isRefused(place.shown)) {
          for (const line of place.shown.why.split('\n')) shell.note(`crm-mirror: ${line}`);
          shell.note(`crm-mirror: ${file}: its mirror is stopped until the file is mended`);
        }
        place.failure = undefined;
        void place.turn(async () => move(place));
      }
    },
    /** Releases the mirrors of this worker of which `isLent` says that others have to have them. */
    release(isLent: (mirror: string) => boolean): void {
      for (const place of places.values()) {
        const { served: own, isLeaving } = place;
        if (!own || isLeaving || !own.isHere() || !isLent(own.mirror)) continue;
        void place.turn(async () => {
          if (place.served !== own || shell.stop.aborted) return;
          shell.note(`crm-mirror: ${own.mirror}: another worker takes it once its run has ended`);
          await leave(place, own);
          await move(place);
        });
      }
    },
    /** Stops to serve. Waits for work in progress, which the worker's `stop` interrupts. */
    async close(): Promise<void> {
      // A mirror that is leaving has been interrupted, and leaves.
      await Promise.all([...places.values()].map(async ({ turn }) => turn(() => undefined)));
      await Promise.all(served.splice(0).map(async (one) => one.close()));
    },
  };
}
