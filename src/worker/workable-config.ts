/** Checks that a worker can serve a configuration. */
import type { Config } from '../config/config.ts';
import { Invalid } from '../domain/errors.ts';
import { placeOf } from '../domain/values/config-file.ts';
import { dueIn, type Schedule } from '../compose/queues/run-schedule.ts';

/** A configuration that a worker can serve. */
export interface Workable extends Config {
  readonly redis: string;
  readonly schedule: Schedule;
}

const nothingDue: Schedule = {
  patterns: { full: undefined, fast: undefined, templates: undefined, sentinel: undefined },
  timezone: 'UTC',
};

/** Returns the error for naming mirrors by a file and by a folder. */
export function namedTwice(): Invalid {
  return new Invalid('-c and --mirrors both name mirrors', { fix: 'keep one of the two' });
}

/**
 * Returns the configuration of a mirror that a worker can serve. Throws Invalid if it has no Redis,
 * nothing is due, or it reads standard input.
 */
export function workable({ redis, schedule = nothingDue, ...config }: Config): Workable {
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
