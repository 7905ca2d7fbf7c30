/**
 * The long-running form: keeps each of its mirrors as its schedule says, until it is asked to stop.
 */
import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/config.ts';
import { Invalid, isExpected, Unavailable } from '../model/errors.ts';
import { systemClock } from '../http/time.ts';
import { homeRecord } from '../queue/claim.ts';
import { serveCommands } from '../queue/command-queue.ts';
import { connectQuickly } from '../queue/quick.ts';
import { sealOf } from '../queue/seal.ts';
import { readKey } from '../snapshot/ledger-key.ts';
import { dueIn, openRunQueue, type RunQueue } from '../queue/run-queue.ts';
import { codeOfStop } from './fault.ts';
import { doHanded } from './handed.ts';
import { createHome, type Home } from './home.ts';
import { residenceIn } from './residence.ts';
import type { Shell } from './shell.ts';

interface Flags {
  config: string[];
  acceptLostSnapshot?: true;
}

export function options(command: Command): void {
  command
    .option('-c, --config <file...>', 'the configuration; several: a mirror each', [
      'config/mirror.yaml',
    ])
    .option(
      '--accept-lost-snapshot',
      'begin with the snapshot that is here where the newest one is lost: it adopts who is there',
    );
}

interface Scheduled extends Config {
  readonly redis: string;
  readonly schedule: NonNullable<Config['schedule']>;
}

export async function run(command: Command, shell: Shell): Promise<number> {
  const { config: files, acceptLostSnapshot: acceptLost = false } = command.opts<Flags>();
  const configs = files.map((file) => scheduled(loadConfig(file, shell.env)));
  refuseTwins(configs);
  const served = configs.map((config) => serve(config, shell, acceptLost));
  try {
    await Promise.race([stopped(shell.stop), ...served.map(({ failed }) => failed)]);
  } finally {
    await Promise.all(served.map(({ close }) => close()));
  }
  return codeOfStop(shell.stop.reason);
}

function scheduled({ redis, schedule, ...config }: Config): Scheduled {
  if (redis === undefined) {
    throw new Invalid(
      `${config.file}: redis is missing, and a worker needs one → write redis: redis://HOST:PORT, or use \`sync\` from cron`,
    );
  }
  if (schedule === undefined || dueIn(schedule).length === 0) {
    throw new Invalid(
      `${config.file}: schedule names no run, so a worker has nothing to do → add schedule: { full: "0 3 * * *" }`,
    );
  }
  return { ...config, redis, schedule };
}

/** One mirror of two configurations would be kept by both. */
function refuseTwins(configs: readonly Config[]): void {
  for (const [at, { file, mirror, snapshot }] of configs.entries()) {
    const twin = configs
      .slice(0, at)
      .find((other) => other.mirror === mirror || other.snapshot === snapshot);
    if (!twin) continue;
    const what = twin.mirror === mirror ? `are both named ${mirror}` : 'share one snapshot';
    throw new Invalid(`${twin.file} and ${file} ${what} → give each a mirror name and a snapshot`);
  }
}

interface Served {
  /** Rejects when it can never be served. */
  failed: Promise<never>;
  close(): Promise<void>;
}

function serve(config: Scheduled, shell: Shell, acceptLost: boolean): Served {
  const { mirror, redis, schedule } = config;
  const failed = Promise.withResolvers<never>();
  const fail = (error: unknown): void => {
    if (isExpected(error)) return failed.reject(error);
    const why = error instanceof Error ? error.message : String(error);
    const text = `${config.file}: Redis refuses the schedule (${why}) → mend its access, then start again`;
    failed.reject(new Unavailable(text, { acted: 'no', cause: error }));
  };
  const quick = connectQuickly(redis);
  const own = homeRecord(quick, mirror, randomBytes(8).toString('hex'));
  const residence = residenceIn(own, { mirror, acceptLost, clock: systemClock });
  const load = () => loadConfig(config.file, shell.env);
  const home = createHome({ config, shell, residence, load });
  const queue: RunQueue = openRunQueue({
    url: redis,
    mirror,
    clock: systemClock,
    notice(lost) {
      const what =
        lost === undefined
          ? 'Redis is there again, the schedule goes on'
          : `Redis is away (${lost}); the schedule waits for it`;
      shell.note(`crm-mirror: ${mirror}: ${what}`);
      // It may have come back empty.
      if (lost === undefined) queue.follow(schedule).catch(fail);
    },
  });
  let handed: ReturnType<typeof takeHanded> | undefined;
  const begin = async (): Promise<void> => {
    await queue.follow(schedule);
    await home.taken();
    if (shell.stop.aborted) return;
    const named = dueIn(schedule).map(({ tick }) => tick);
    shell.note(`crm-mirror: ${mirror}: worker serves ${named.join(', ')}`);
    queue.serve(home.run);
    handed = takeHanded(config, shell, home);
    await home.stay();
  };
  begin().catch(fail);
  return {
    failed: failed.promise,
    async close() {
      failed.promise.catch(() => undefined);
      await Promise.all([queue.close(), handed?.close()]);
      await own.leave().catch(() => undefined);
      await home.close();
      quick.close();
    },
  };
}

/** Commands that were called beside this worker. */
function takeHanded(
  config: Scheduled,
  shell: Shell,
  { hold }: Pick<Home, 'hold'>,
): { close(): Promise<void> } {
  const { redis: url, mirror, ledger } = config;
  return serveCommands({ url, mirror, clock: systemClock }, async (sealed, tell) => {
    const key = readKey(ledger.keyFile);
    if (key === undefined) throw new Invalid(`${ledger.keyFile}: the key of the ledger is gone`);
    return doHanded({ config, shell, hold, seal: sealOf(key, randomBytes) }, sealed, tell);
  });
}

async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // Nothing else may keep the process up: it would end while Redis is away.
  const alive = setInterval(() => undefined, 60_000);
  await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  clearInterval(alive);
}
