/**
 * Looks every few seconds at what a mirror needs, and stores that its worker is alive, so that the
 * status is true between runs: disk, Redis, schedule, platform, and the sources of the CRM. It asks
 * neither the platform nor the CRM anything: it looks whether a file is there and whether a host
 * takes connections.
 */
import { existsSync, statfsSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../domain/clock.ts';
import { codeOf } from '../domain/errors.ts';
import { placeOf } from '../domain/values/config-file.ts';
import type { Config } from '../config/config.ts';
import type { OutageRecord } from '../store/health-file.ts';

const eachMs = 10_000;
const connectMs = 5_000;
/** Below this much free space, no transaction of a run is sure to fit. */
const freeBytes = 256 * 1024;

export interface PulseOptions {
  config: Config;
  outages: OutageRecord;
  clock: Clock;
  probe: Probe;
  isHere(): boolean;
  away(): string | undefined;
  lookForOverdue(): void;
}

/** Beats until `stop`. Never throws. */
export async function pulse(options: PulseOptions, stop: AbortSignal): Promise<void> {
  const { clock, isHere } = options;
  while (!stop.aborted) {
    if (isHere()) await beat(options);
    await clock.sleep(eachMs, stop).catch(() => undefined);
  }
}

async function beat(options: PulseOptions): Promise<void> {
  const { config, outages, probe, away } = options;
  const note = (part: Parameters<OutageRecord['works']>[0], why: string | undefined): void => {
    if (why === undefined) outages.works(part, true);
    else
      outages.failed(
        part,
        why.endsWith(missing) ? { reason: why, fix: present } : { reason: why },
        'probe',
      );
  };
  note('disk', whyFull(config.snapshot));
  note('redis', away());
  if (away() === undefined) options.lookForOverdue();
  outages.beat();
  const { platform, contacts, templates } = config;
  await Promise.all([
    probe(platform.url).then((why) => note('platform', why)),
    contacts && whySourceAway(contacts.source, probe).then((why) => note('contacts', why)),
    templates && whySourceAway(templates.source, probe).then((why) => note('templates', why)),
  ]);
}

function whyFull(path: string): string | undefined {
  const folder = dirname(path);
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < freeBytes ? `${folder} has no space left` : undefined;
  } catch {
    return undefined;
  }
}

/** Returns why a source cannot be reached; undefined if it can be, or if that is not known. */
async function whySourceAway(
  source: { path: string } | { url: string },
  probe: Probe,
): Promise<string | undefined> {
  if (!('path' in source)) return probe(source.url);
  if (placeOf(source.path) !== 'file') return probe(source.path);
  return existsSync(source.path) ? undefined : `${source.path}${missing}`;
}

const missing = ' is not there';
const present = 'put the file there, or correct its path in the configuration';

/** Returns why the host of a URL takes no connection; undefined if it does, or none is named. */
export type Probe = (url: string) => Promise<string | undefined>;

const ports: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'postgres:': 5432,
  'postgresql:': 5432,
  'mysql:': 3306,
  'mariadb:': 3306,
};

/** Creates a probe. Mirrors with the same host share one connection in a while. */
export function createProbe(clock: Clock): Probe {
  const known = new Map<string, { untilMs: number; result: Promise<string | undefined> }>();
  return async (text) => {
    const url = URL.parse(text);
    const port = Number(url?.port) || ports[url?.protocol ?? ''];
    if (!url?.hostname || port === undefined) return undefined;
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    const at = `${host}:${port}`;
    const before = known.get(at);
    if (before && clock.monotonic() < before.untilMs) return before.result;
    const result = tryToConnect(host, port);
    known.set(at, { untilMs: clock.monotonic() + eachMs / 2, result });
    return result;
  };
}

async function tryToConnect(host: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host, port, timeout: connectMs });
  socket.once('connect', () => resolve(undefined));
  socket.once('timeout', () => resolve(`${host}:${port} gives no connection`));
  socket.once('error', (error) => {
    resolve(`${host}:${port} cannot be reached (${codeOf(error) || error.name})`);
  });
  const why = await promise;
  socket.destroy();
  return why;
}
