/**
 * Checks that a worker can serve a configuration, reads a folder of them, one file for each mirror,
 * and follows its changes.
 *
 *   the folder shows, twice in a row          result
 *   a new or changed file                     it is read; usable, or refused with the reason
 *   a changed defaults.yaml                   every file is read again
 *   a changed file of an API key              the files that name it are read again
 *   a file is gone                            so is its mirror
 *   no file at all, no defaults.yaml where    nothing changes, and it is said once: a folder that
 *   there was one, or an error                is not mounted must not stop mirrors
 *   two files with one mirror or snapshot     the one that was usable before stays usable; the
 *                                             other, or both if there is none, is refused
 *
 * The system tells of changes. As some file systems do not, the folder is also read every half
 * minute, and refused files with it, because an environment or a key may be what is wrong.
 */
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';
import { codeOf, Invalid, isExpected, renderProblem } from '../domain/errors.ts';
import { readSmallFile, placeOf } from '../domain/values/config-file.ts';
import { defaultsName } from '../config/load-config.ts';
import type { Config } from '../config/config.ts';
import { explain } from '../compose/output/failure-report.ts';
import { dueIn, type Schedule } from '../config/schema/cron-pattern.ts';

/** A file of the folder that cannot be used, so that its mirror is stopped. */
export interface RefusedFile {
  file: string;
  /** What is wrong, one line for each mistake. */
  why: string;
  /** As it was when it could be used last; undefined if this process has not seen that. */
  last?: Workable | undefined;
}

/** A file that this process could use before. */
export interface StoppedFile extends RefusedFile {
  last: Workable;
}

/** The files of the folder by their paths: what to serve, or why not. */
export type FolderFiles = ReadonlyMap<string, Workable | RefusedFile>;

interface MirrorFolderOptions {
  folder: string;
  clock: Clock;
  load(file: string): Workable;
  note(line: string): void;
  /** How long a change must last, because an editor may write a file in several steps. */
  settleMs?: number;
  rescanMs?: number;
}

interface Known {
  print: string;
  content: string;
  read: Workable | RefusedFile;
}

export function isRefused(one: Workable | RefusedFile): one is RefusedFile {
  return 'why' in one;
}

const gone = '';

/** Opens a folder. Nothing is read yet. */
export function openMirrorFolder(options: MirrorFolderOptions) {
  const { clock, load, note, settleMs = 1_000, rescanMs = 30_000 } = options;
  const folder = resolve(options.folder);
  const known = new Map<string, Known>();
  /** The states that were seen once, of files that are to be read if they are seen again. */
  const seen = new Map<string, string>();
  /** The files that were usable when they were last looked at. */
  let usable: ReadonlySet<string> = new Set();
  let hadDefaults = false;
  let doubt: string | undefined;

  /** Returns the paths of the mirrors' files, or why the folder cannot be believed. */
  const list = (): string[] | string => {
    let names: string[];
    try {
      names = readdirSync(folder);
    } catch (error) {
      return `cannot be read (${codeOf(error)})`;
    }
    const yaml = names.filter((name) => /^[^.].*\.ya?ml$/.test(name)).toSorted();
    const hasDefaults = yaml.includes(defaultsName);
    if (yaml.length === 0 && known.size > 0) return 'is empty now';
    if (hadDefaults && !hasDefaults) return `${defaultsName} is gone`;
    hadDefaults = hasDefaults;
    return yaml.filter((name) => name !== defaultsName).map((name) => join(folder, name));
  };

  const readOne = (file: string, before: Known | undefined): Known => {
    const print = printOf(file, before?.read);
    const text = [file, join(dirname(file), defaultsName)]
      .map((path) => {
        try {
          return readSmallFile(path).toString('base64');
        } catch {
          return '';
        }
      })
      .join(' ');
    let read: Known['read'];
    try {
      read = load(file);
    } catch (error) {
      if (!isExpected(error)) throw error;
      const known = before?.read;
      const last = known && isRefused(known) ? known.last : known;
      read = { file, why: explain(error).text, last };
    }
    const content = text + (isRefused(read) ? read.why : read.platform.apiKey);
    if (before?.content === content) return { print, content, read: before.read };
    const isOtherKey = keyFileOf(read) !== keyFileOf(before?.read);
    return { print: isOtherKey ? printOf(file, read) : print, content, read };
  };

  /** Reads the files that are due, and returns whether any of them means something else now. */
  const take = async (
    files: readonly string[],
    isDue: (file: string, print: string, before: Known | undefined) => boolean,
  ): Promise<boolean> => {
    let isChanged = false;
    for (const file of new Set([...known.keys(), ...files])) {
      const before = known.get(file);
      const print = files.includes(file) ? printOf(file, before?.read) : gone;
      const due = isDue(file, print, before);
      if (due || print === (before?.print ?? gone)) seen.delete(file);
      else seen.set(file, print);
      if (!due) continue;
      if (print === gone) known.delete(file);
      else known.set(file, readOne(file, before));
      isChanged ||= known.get(file)?.read !== before?.read;
      // Five hundred files must not keep the events of other mirrors waiting.
      await setImmediate();
    }
    return isChanged;
  };

  const look = async (all: boolean): Promise<boolean> => {
    const files = list();
    const isDoubtful = typeof files === 'string';
    if (isDoubtful && files !== doubt) {
      note(`crm-mirror: ${folder}: ${files}; the mirrors go on as they are`);
    }
    doubt = isDoubtful ? files : undefined;
    if (isDoubtful) {
      seen.clear();
      return false;
    }
    return take(files, (file, print, before) =>
      print === (before?.print ?? gone)
        ? all && before !== undefined && isRefused(before.read)
        : seen.get(file) === print,
    );
  };

  /** Refuses files that name the same mirror or snapshot, except one that was usable before. */
  const apart = (): FolderFiles => {
    const claims = Map.groupBy(
      [...known].flatMap(([file, { read }]) => (isRefused(read) ? [] : claimsOf(file, read))),
      ({ claim }) => claim,
    );
    const fix = 'give each a mirror name and a snapshot of its own';
    const files = new Map<string, Workable | RefusedFile>();
    for (const [file, { read }] of known) {
      const rival = (isRefused(read) ? [] : claimsOf(file, read))
        .flatMap(({ claim }) => claims.get(claim) ?? [])
        .find((other) => other.file !== file && !(usable.has(file) && !usable.has(other.file)));
      const reason = rival && `${rival.file} ${rival.what}`;
      const why = reason === undefined ? reason : renderProblem({ place: file, reason, fix });
      files.set(file, why === undefined ? read : { file, why });
    }
    usable = new Set([...files].flatMap(([file, one]) => (isRefused(one) ? [] : [file])));
    return files;
  };

  return {
    /** Reads all files. Throws Invalid if the folder cannot be read. */
    async read(): Promise<FolderFiles> {
      const files = list();
      if (typeof files === 'string') {
        throw new Invalid(`${options.folder}: ${files}`, { fix: 'name a folder with --mirrors' });
      }
      await take(files, () => true);
      return apart();
    },
    /** Calls `changed` after each change, until `stop`. */
    async follow(changed: (files: FolderFiles) => void, stop: AbortSignal): Promise<void> {
      let woken = new AbortController();
      const watcher = watchFolder(folder, () => woken.abort());
      while (!stop.aborted) {
        const isSettling = seen.size > 0;
        const ends = AbortSignal.any([stop, woken.signal]);
        await clock.sleep(isSettling ? settleMs : rescanMs, ends).catch(() => undefined);
        const isWoken = woken.signal.aborted;
        // Changes come in groups.
        if (isWoken) await clock.sleep(settleMs, stop).catch(() => undefined);
        woken = new AbortController();
        if (stop.aborted) break;
        if (await look(!isWoken && !isSettling)) changed(apart());
      }
      watcher?.close();
    },
  };
}

/** Without the help of the system, for example on a network, the rescan finds changes. */
function watchFolder(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, changed);
    return watcher.on('error', () => watcher.close());
  } catch {
    return undefined;
  }
}

/** Returns what changes when a file, its defaults, or the file of its API key is written. */
function printOf(file: string, read: Known['read'] | undefined): string {
  const key = keyFileOf(read);
  const files = [file, join(dirname(file), defaultsName), ...(key === undefined ? [] : [key])];
  return files.map(stateOf).join(' ');
}

function keyFileOf(read: Known['read'] | undefined): string | undefined {
  return read && !isRefused(read) ? read.platform.apiKeyFile : undefined;
}

function stateOf(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch (error) {
    return codeOf(error);
  }
}

function claimsOf(file: string, { mirror, snapshot }: Workable) {
  return [
    { file, claim: `mirror ${mirror}`, what: `is named ${mirror}, too` },
    { file, claim: `snapshot ${snapshot}`, what: 'has the same snapshot' },
  ];
}

/** A configuration that a worker can serve. */
export interface Workable extends Config {
  readonly redis: string;
  readonly schedule: Schedule;
}

export const nothingDue: Schedule = {
  patterns: { full: undefined, fast: undefined, templates: undefined, sentinel: undefined },
  timezone: 'UTC',
};

export function namedTwice(): Invalid {
  return new Invalid('-c and --mirrors both name mirrors', { fix: 'keep one of the two' });
}

/** Throws Invalid if a worker cannot serve it: no Redis, nothing due, or standard input. */
export function workable({ redis, schedule = nothingDue, ...config }: Config): Workable {
  const { file, contacts, templates } = config;
  // Standard input can be read only once, and a worker reads repeatedly.
  for (const [name, part] of Object.entries({ contacts, templates })) {
    if (!part || !('path' in part.source) || placeOf(part.source.path) !== 'input') continue;
    const what = `${file}: ${name}.source is standard input, which a worker cannot read`;
    throw new Invalid(what, { fix: 'name a file, or pipe it into `sync`' });
  }
  if (redis === undefined) {
    throw new Invalid(`${file}: redis is missing, and a worker needs one`, {
      fix: 'write redis: redis://HOST:PORT, or use `sync` from cron',
    });
  }
  if (dueIn(schedule).length === 0 && contacts?.webhook === undefined) {
    throw new Invalid(`${file}: schedule names no run, so a worker has nothing to do`, {
      fix: 'add schedule: { full: "0 3 * * *" }',
    });
  }
  return { ...config, redis, schedule };
}
