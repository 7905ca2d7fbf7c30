/**
 * Runs continuously and serves each of its mirrors according to its schedule, until it is asked to
 * stop.
 */
import type { Command } from 'commander';
import { refuseTwins } from '../config/distinct-mirrors.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config } from '../config/config.ts';
import { Invalid } from '../domain/errors.ts';
import { placeOf } from '../domain/values/config-file.ts';
import { dueIn, type Schedule } from '../worker/queues/run-schedule.ts';
import { codeOfStop } from '../cli/output/exit-codes.ts';
import { serve, type Workable } from '../worker/mirror-service.ts';
import { hushed } from '../cli/run/run-log.ts';
import { type QuietFlags, quietOptions } from '../cli/output/verbosity.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { stopped } from '../cli/compose/stop-signals.ts';
import { openServer, type WorkerServer } from '../worker/worker-server.ts';

interface Flags extends QuietFlags {
  config: string[];
  acceptLostSnapshot?: true;
}

/** Declares the flags of `worker`. */
export function options(command: Command): void {
  quietOptions(command)
    .option('-c, --config <file...>', 'the configuration; several: a mirror each', [
      'config/mirror.yaml',
    ])
    .option(
      '--accept-lost-snapshot',
      'begin with the snapshot that is here where the newest one is lost: it adopts who is there',
    );
}

/**
 * Serves every mirror, and starts the HTTP server if one is configured. Returns the exit code for
 * the signal.
 */
export async function run(command: Command, own: Shell): Promise<number> {
  const shell = hushed(own, command.opts<Flags>(), true);
  const { config: files, acceptLostSnapshot: acceptLost = false } = command.opts<Flags>();
  const configs = files.map((file) => workable(loadConfig(file, shell.env)));
  refuseTwins(configs);
  const served = configs.map((config) =>
    serve(config, shell, {
      acceptLost,
      ended: (summary) => server?.ended(config.mirror, summary),
    }),
  );
  // No run can end before the server is assigned.
  const server: WorkerServer | undefined = openServer(configs, served, shell);
  try {
    await server?.listen();
    await Promise.race([stopped(shell.stop), ...served.map(({ failed }) => failed)]);
  } finally {
    await Promise.all([server?.close(), ...served.map(({ close }) => close())]);
  }
  return codeOfStop(shell.stop.reason);
}

const nothingDue: Schedule = {
  patterns: { full: undefined, fast: undefined, templates: undefined, sentinel: undefined },
  timezone: 'UTC',
};

function workable({ redis, schedule = nothingDue, ...config }: Config): Workable {
  refuseInput(config);
  if (redis === undefined) {
    throw new Invalid(`${config.file}: redis is missing, and a worker needs one`, {
      fix: 'write redis: redis://HOST:PORT, or use `sync` from cron',
    });
  }
  if (dueIn(schedule).length === 0 && config.contacts?.webhook === undefined) {
    throw new Invalid(`${config.file}: schedule names no run, so a worker has nothing to do`, {
      fix: 'add schedule: { full: "0 3 * * *" }',
    });
  }
  return { ...config, redis, schedule };
}

/**
 * Throws Invalid for standard input, because it can be read only once and a worker reads
 * repeatedly.
 */
function refuseInput({
  file,
  contacts,
  templates,
}: Pick<Config, 'file' | 'contacts' | 'templates'>) {
  for (const [name, part] of Object.entries({ contacts, templates })) {
    if (!part || !('path' in part.source) || placeOf(part.source.path) !== 'input') continue;
    const what = `${file}: ${name}.source is standard input, which a worker cannot read`;
    throw new Invalid(what, { fix: 'name a file, or pipe it into `sync`' });
  }
}
