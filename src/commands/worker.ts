import { type Called, quiet, configOption } from '../compose/command-options.ts';
import { refuseTwins, loadConfig } from '../config/load-config.ts';
import { Interrupted, Invalid } from '../domain/errors.ts';
import { codeOfStop } from '../compose/output/failure-report.ts';
import { serve } from '../worker/mirror-service.ts';
import { serveFolder, shareParts } from '../worker/folder-worker.ts';
import { limitHeapGrowth } from '../worker/worker-capacity.ts';
import { namedTwice, workable } from '../worker/mirror-folder.ts';
import { hushed } from '../app/run/run-log.ts';
import { type Shell, stopped } from '../compose/process-shell.ts';
import { openServer, serverIn, type WorkerServer } from '../worker/worker-server.ts';

export const options = {
  ...quiet,
  'config <file...>': () => configOption('several'),
  'mirrors <folder>':
    'instead of -c: a folder of configurations, a mirror each, with defaults.yaml for all',
  'accept-lost-snapshot':
    'begin with the snapshot that is here where the newest one is lost: it adopts who is there',
};

/** Serves every mirror, and HTTP if it is configured. The exit code is that of the signal. */
export async function run({ flags, namesConfig }: Called<typeof options>, own: Shell) {
  const over = new AbortController();
  const stop = AbortSignal.any([own.stop, over.signal]);
  const shell = { ...hushed(own, flags, true), stop };
  // Where something fails, nothing waits for the runs of other mirrors.
  const end = (): void => over.abort(new Interrupted('SIGTERM'));
  limitHeapGrowth(process.versions.node);
  if (flags.mirrors === undefined) {
    const { config: files, acceptLostSnapshot: acceptLost = false } = flags;
    const configs = files.map((file) => workable(loadConfig(file, shell.env)));
    refuseTwins(configs);
    const asked = serverIn(configs);
    const { connections, ...shared } = shareParts(shell);
    const served = configs.map((config) =>
      serve(config, shell, {
        ...shared,
        acceptLost,
        connections: connections.to(config.redis),
        load: () => loadConfig(config.file, shell.env),
        ended: (summary) => server?.ended(config.mirror, summary),
      }),
    );
    // No run can end before the server is assigned.
    const server: WorkerServer | undefined = openServer(asked, { served }, shell);
    try {
      await server?.listen();
      await Promise.race([stopped(shell.stop), ...served.map(({ failed }) => failed)]);
    } finally {
      end();
      await Promise.all([server?.close(), ...served.map(({ close }) => close())]);
      connections.close();
    }
  } else {
    if (namesConfig) throw namedTwice();
    if (flags.acceptLostSnapshot) {
      throw new Invalid('--accept-lost-snapshot would hold for every mirror of the folder', {
        fix: 'start a worker with -c for the one mirror, and stop it when that is well',
      });
    }
    await serveFolder(flags.mirrors, shell, end);
  }
  return codeOfStop(stop.reason);
}
