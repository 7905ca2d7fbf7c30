/**
 * Serves the mirrors of a folder until it is asked to stop: the folder (mirror-folder.ts), its
 * mirrors (served-mirrors.ts) and their server.
 */
import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { shareLinks } from '../rate-limit/shared/shared-link.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { stopped } from '../cli/compose/stop-signals.ts';
import { type FolderFiles, isRefused, openMirrorFolder } from './mirror-folder.ts';
import { serve } from './mirror-service.ts';
import { shareConnections } from './queues/shared-connections.ts';
import { createServedMirrors } from './served-mirrors.ts';
import { workable } from './workable-config.ts';
import { openServer, type WorkerServer } from './worker-server.ts';

/**
 * Serves the folder. Throws Invalid if the folder cannot be read, or its server cannot listen. A
 * file that cannot be used stops only its mirror.
 */
export async function serveFolder(path: string, outer: Shell): Promise<void> {
  const shell = { ...outer, openLink: shareLinks() };
  const folder = openMirrorFolder({
    folder: path,
    clock: systemClock,
    load: (file) => workable(loadConfig(file, shell.env)),
    note: shell.note,
  });
  const connections = shareConnections(randomBytes(8).toString('hex'), systemClock);
  let server: WorkerServer | undefined;
  const mirrors = createServedMirrors({
    shell,
    serve: (config) =>
      serve(config, shell, {
        acceptLost: false,
        connections: connections.to(config.redis),
        // The folder tells of a changed file, or of a changed key.
        load: () => config,
        ended: (summary) => server?.ended(config.mirror, summary),
      }),
  });
  const differs = createServerCheck(shell);
  let asked: Config | undefined;
  const become = async (files: FolderFiles): Promise<void> => {
    mirrors.become(files);
    const configs = [...files.values()].flatMap((one) => (isRefused(one) ? [] : [one]));
    asked ??= configs.find((one) => one.server);
    differs(configs, asked);
    if (server || !asked) return;
    server = openServer(asked, mirrors, shell);
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
    await Promise.all([server?.close(), mirrors.close()]);
    connections.close();
  }
}

/** Prints once for each file that it asks for another server than the one that listens. */
function createServerCheck({ note }: Shell) {
  const said = new Set<string>();
  return (configs: readonly Config[], asked: Config | undefined): void => {
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
}
