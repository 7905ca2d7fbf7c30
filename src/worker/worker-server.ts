/** Creates the server that a worker runs for all its mirrors, with the console. */
import { randomBytes } from 'node:crypto';
import { Invalid, isExpected } from '../domain/errors.ts';
import type { Config } from '../config/config.ts';
import { systemClock } from '../http/system-clock.ts';
import { explain } from '../compose/output/failure-report.ts';
import { unserved } from '../compose/fleet/fleet.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type Attention, rank } from '../views/status/attention.ts';
import { accessRulesOf } from '../console/access/access-rules.ts';
import { type ConsoleMirror, consoleMirror } from '../console/view/console-mirror.ts';
import { pagesFor, serveConsole } from '../console/console-routes.ts';
import type { ConsoleFleet } from '../console/pages/mirrors.ts';
import { createMetrics } from './server/metrics.ts';
import { createServer } from './server/http-server.ts';
import { serveWorkerPages, serveWorkerRoutes } from './server/worker-routes.ts';
import type { RefusedFile, StoppedFile } from './mirror-folder.ts';
import type { Served } from './mirror-service.ts';

/** What a worker serves; both lists may change while it runs. */
export interface Serving {
  served: readonly Served[];
  /** Returns the files of a folder whose mirrors are stopped; undefined without a folder. */
  refused?: (() => readonly RefusedFile[]) | undefined;
  fleets?: (() => readonly ConsoleFleet[]) | undefined;
}

export type WorkerServer = NonNullable<ReturnType<typeof openServer>>;

/** Returns undefined if no server is asked for. Throws Invalid if its users cannot be read. */
export function openServer(
  asked: Config | undefined,
  { served, refused, fleets }: Serving,
  shell: Shell,
) {
  if (!asked?.server) return undefined;
  const metrics = createMetrics(served, {
    stopped: refused,
    async unserved() {
      const known = fleets?.() ?? [];
      if (known.length === 0) return undefined;
      try {
        const seen = await Promise.all(known.map(async ({ read }) => read()));
        return seen.reduce((sum, fleet) => sum + unserved(fleet.mirrors).length, 0);
      } catch (error) {
        if (isExpected(error)) return undefined;
        throw error;
      }
    },
    clock: systemClock,
  });
  const access = accessRulesOf(asked);
  const failed = (error: unknown): void => shell.note(`crm-mirror: server: ${explain(error).text}`);
  const { host, port, token, publicUrl } = asked.server;
  const consoleOf = createConsoleMirrors(shell);
  const server = createServer({
    host,
    port,
    clock: systemClock,
    failed,
    register(app) {
      serveWorkerRoutes(app, {
        token,
        publicUrl,
        webhookOf: (mirror) => served.findLast((one) => one.mirror === mirror)?.webhook,
        metrics,
        ready: () =>
          served.flatMap(({ mirror, away }) => {
            const why = away();
            return why === undefined ? [] : [`${mirror}: ${why}`];
          }),
        failing: () =>
          served
            .flatMap(({ mirror, faults }) =>
              faults().map(({ code, since }) => ({ mirror, code, since })),
            )
            .toSorted((a, b) => rank(a.code) - rank(b.code)),
        refused,
        clock: systemClock,
      });
      // A mirror that was served before its file was refused keeps its page, but no run.
      const isStopped = (one: RefusedFile): one is StoppedFile =>
        one.last !== undefined && !served.some(({ mirror }) => mirror === one.last?.mirror);
      const stopped = () => (refused?.() ?? []).filter(isStopped);
      const mirrors = () => [...stopped(), ...served].map(consoleOf);
      const secret = randomBytes(32).toString('hex');
      const queues = () => served.flatMap((one) => one.queues);
      serveConsole(app, {
        mirrors,
        refused: () => (refused?.() ?? []).filter((one) => !isStopped(one)),
        fleets,
        access,
        clock: systemClock,
        secret,
        random: randomBytes,
        failed,
        beside: (scope) => serveWorkerPages(scope, pagesFor(access, { metrics, queues })),
      });
    },
  });
  return {
    ended: metrics.ended,
    async listen(): Promise<void> {
      shell.note(`crm-mirror: the server listens on ${await server.listen()}`);
    },
    close: server.close,
  };
}

/** The jobs that operators began survive a change of the configuration. */
function createConsoleMirrors(shell: Shell): (one: Served | StoppedFile) => ConsoleMirror {
  const shown = new WeakMap<object, ConsoleMirror>();
  const jobs = new Map<string, ConsoleMirror['jobs']>();
  const create = (one: Served | StoppedFile): ConsoleMirror => {
    const isStopped = 'why' in one;
    const created = isStopped
      ? consoleMirror(one.last, shell, { clock: systemClock, faults: () => [refusal(one)] })
      : consoleMirror(one.config, shell, { clock: systemClock, faults: one.faults, queues: one });
    const { mirror } = created.config;
    const kept = jobs.get(mirror) ?? created.jobs;
    jobs.set(mirror, kept);
    return { ...created, ...(!isStopped && { limits: one.limits }), jobs: kept };
  };
  return (one) => {
    const mirror = shown.get(one) ?? create(one);
    shown.set(one, mirror);
    return mirror;
  };
}

function refusal({ file, why }: RefusedFile): Attention {
  const text = `its configuration cannot be used: ${why.replaceAll('\n', '; ')}`;
  const fix = `correct ${file}: a worker then serves it`;
  return { code: 'worker_dead', text, fix, since: null };
}

/** Returns the one with a server block. Throws Invalid if another asks for a different one. */
export function serverIn(configs: readonly Config[]): Config | undefined {
  const [first, ...others] = configs.filter(({ server }) => server);
  for (const { file, server } of others) {
    if (JSON.stringify(server) === JSON.stringify(first?.server)) continue;
    const what = 'ask for different servers, and a worker has one';
    throw new Invalid(`${first?.file} and ${file} ${what}`, {
      fix: 'write the same block, or leave one out',
    });
  }
  return first;
}
