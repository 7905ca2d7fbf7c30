/** Defines the configuration of a mirror, created once from a valid file and then trusted. */
import type { z } from 'zod';
import { byGuardKey, type Limit } from '../domain/guard-classes.ts';
import { milliseconds } from '../domain/values/config-value.ts';
import { spread } from './schema/cron-pattern.ts';
import type { fileSchema } from './schema/file-schema.ts';
import { withAbsolutePaths } from './schema/source-types.ts';

/** A valid file with its defaults filled in; paths and durations are still text. */
type File = z.output<typeof fileSchema>;

/**
 * Absolute paths, durations in milliseconds, defaults filled in, frozen. What is optional in the
 * file and has no default is undefined.
 */
export type Config = {
  readonly [Key in keyof Settled]: Readonly<Settled[Key]>;
};

type Settled = ReturnType<typeof settle>;

/**
 * Returns the configuration. `apiKey` comes from the file itself or from the one that apiKeyFile
 * names; `absolute` makes a path in the file absolute.
 */
export function settle(
  valid: File,
  { file, apiKey, absolute }: { file: string; apiKey: string; absolute(path: string): string },
) {
  const { memoryKeyFile, platform, contacts, templates, policy, guards, keep, ...more } = valid;
  const { alerts, audit, requests, ...rest } = more;
  const { approvers, canary, deleteAfter, ...policies } = policy;
  const { absentFor, absentReadings, ...limits } = guards;
  const { schedule } = valid;
  const { runTime, proofAge, ...bounds } = alerts;
  const snapshot = absolute(valid.snapshot);
  const placed = (path: string | undefined) => (path === undefined ? undefined : absolute(path));
  return freeze({
    ...rest,
    file,
    snapshot,
    memory: {
      path: `${snapshot}-memory`,
      keyFile: placed(memoryKeyFile) ?? `${snapshot}-memory-key`,
    },
    audit: { keepMs: milliseconds(audit.keep) },
    platform: { ...platform, apiKey, apiKeyFile: placed(platform.apiKeyFile) },
    contacts: contacts && {
      ...contacts,
      source: withAbsolutePaths(contacts.source, absolute),
      map: placed(contacts.map),
      returns: contacts.returns && withAbsolutePaths(contacts.returns, absolute),
    },
    templates: templates && { ...templates, source: withAbsolutePaths(templates.source, absolute) },
    policy: {
      ...policies,
      canary: canary && {
        percent: canary.percent,
        floor: canary.floor,
        bounds: canary.bounds,
        waitMs: milliseconds(canary.wait),
      },
      deleteAfterMs: milliseconds(deleteAfter),
    },
    approvers: approvers && { ...approvers, mirror: valid.mirror, platform: platform.url },
    guards: {
      ...byGuardKey(({ configKey }): Limit => {
        const { holdFor, ...limit } = limits[configKey];
        return holdFor === undefined ? limit : { ...limit, holdForMs: milliseconds(holdFor) };
      }),
      absentReadings,
      absentForMs: milliseconds(absentFor),
    },
    alerts: {
      ...bounds,
      runTimeMs: runTime === undefined ? undefined : milliseconds(runTime),
      proofAgeMs: proofAge === undefined ? undefined : milliseconds(proofAge),
    },
    keepMs: milliseconds(keep),
    requests: {
      isOn: requests.log === 'on',
      keepMs: milliseconds(requests.keep),
      bytes: Number(requests.size.slice(0, -2)) * (requests.size.endsWith('GB') ? 1e9 : 1e6),
    },
    schedule: schedule && settleSchedule(schedule, valid.mirror, templates !== undefined),
  });
}

/** Returns the rules for people who are missing from the CRM: how long to wait, what to do. */
export function absenceRulesOf({ guards, policy }: Config) {
  const { absentReadings, absentForMs } = guards;
  const { deletes, deleteAfterMs } = policy;
  return { absentReadings, absentForMs, deletes, deleteAfterMs };
}

/** Returns cron patterns without `H`; six fields begin with seconds. */
function settleSchedule(
  { timezone, ...valid }: NonNullable<File['schedule']>,
  mirror: string,
  hasTemplates: boolean,
) {
  const settle = (entry: keyof typeof valid) => {
    const pattern = valid[entry];
    return typeof pattern === 'string' ? spread(pattern, { mirror, entry }) : undefined;
  };
  const patterns = {
    full: settle('full'),
    fast: settle('fast'),
    templates: hasTemplates ? settle('templates') : undefined,
    sentinel: settle('sentinel'),
  };
  return { patterns, timezone };
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null)
    Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}
