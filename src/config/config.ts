/**
 * The configuration of a mirror. It is made once from a valid file; the rest of the code trusts it.
 */
import type { z } from 'zod';
import type { Condition } from '../domain/condition.ts';
import { byGuardKey, type GuardKey, type Limit } from '../domain/guard-classes.ts';
import { milliseconds } from '../domain/values/config-value.ts';
import { placeOf } from '../domain/values/config-file.ts';
import type { CsvOptions } from '../sources/csv/options.ts';
import type { DirectoryOptions } from '../sources/directory/options.ts';
import type { HttpOptions } from '../sources/http/options.ts';
import type { HubspotOptions } from '../sources/hubspot/options.ts';
import type { NdjsonOptions } from '../sources/ndjson/options.ts';
import type { SalesforceOptions } from '../sources/salesforce/options.ts';
import { type SqlOptions, withPaths } from '../sources/sql/options.ts';
import type { TrytonOptions } from '../sources/tryton/options.ts';
import type { fileSchema } from './schema/file-schema.ts';

type File = z.output<typeof fileSchema>;
type FileContacts = NonNullable<File['contacts']>;
type FileReturns = NonNullable<FileContacts['returns']>;

/** The whole configuration. Paths are absolute, defaults are filled in, and all of it is frozen. */
export interface Config {
  /** The file that it was read from. */
  readonly file: string;
  readonly mirror: string;
  /** The file of the snapshot. */
  readonly snapshot: string;
  /** The files of the do-not-contact list and of its key. */
  readonly ledger: { readonly path: string; readonly keyFile: string };
  readonly platform: PlatformConfig;
  /** At least one of contacts and templates is there. */
  readonly contacts?: ContactsConfig | undefined;
  readonly templates?: TemplatesConfig | undefined;
  readonly policy: PolicyConfig;
  readonly guards: GuardsConfig;
  /** How long runs and changes are kept, in milliseconds. */
  readonly keepMs: number;
  /** When a worker runs; undefined: the file has no such block. */
  readonly schedule?: Schedule | undefined;
  /** The address of the Redis that processes share. It may contain a password. */
  readonly redis?: string | undefined;
  /** The worker's HTTP server; undefined: it has none. */
  readonly server?: ServerConfig | undefined;
  /** Where a worker reports problems, and the secret that it signs them with. */
  readonly notices?: { readonly url: string; readonly secret: string } | undefined;
}

interface ServerConfig {
  readonly host: string;
  /** 0 stands for any free port. */
  readonly port: number;
  /** Undefined only when the host is this machine alone. */
  readonly token?: string | undefined;
  /** Without a trailing slash; undefined: the address that a request itself names. */
  readonly publicUrl?: string | undefined;
}

/** Cron patterns; those with six fields begin with seconds. The time zone is an IANA name. */
interface Schedule {
  readonly patterns: Readonly<
    Record<'full' | 'fast' | 'templates' | 'sentinel', string | undefined>
  >;
  readonly timezone: string;
}

interface PlatformConfig {
  /** With its base path, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string;
  /** The file that the key was read from; undefined: the configuration contains the key. */
  readonly apiKeyFile?: string | undefined;
  /** The longest wait for one request, in milliseconds. */
  readonly timeoutMs: number;
  /** The share of each route's budget that is left to other programs, 0 to 0.9. */
  readonly reserve: number;
}

/** The decisions for cases in which CRM and platform disagree. */
interface PolicyConfig extends Readonly<Omit<File['policy'], 'deleteAfter'>> {
  /** The milliseconds from the opt-out of people who left the CRM to their deletion. */
  readonly deleteAfterMs: number;
  /** Whether the file itself sets `absent`. */
  readonly statesAbsent: boolean;
}

/** The limits of each class of changes, and when people are absent. */
interface GuardsConfig extends Readonly<Record<GuardKey, Readonly<Limit>>> {
  /** The number of readings of the CRM in which a person must be missing. */
  readonly absentReadings: number;
  /** The milliseconds between the first and the last of them, at least. */
  readonly absentForMs: number;
}

/**
 * Where contacts come from and how they are read. Fields are columns or dotted paths of a CRM
 * record.
 */
interface ContactsConfig {
  readonly source: Readonly<
    | CsvOptions
    | NdjsonOptions
    | HttpOptions
    | HubspotOptions
    | SalesforceOptions
    | SqlOptions
    | TrytonOptions
  >;
  /** The module that maps each record before it is read. */
  readonly map?: string | undefined;
  readonly id: string;
  readonly email: string;
  readonly deleted?: FileContacts['deleted'];
  readonly unsubscribed?: FileContacts['unsubscribed'];
  readonly consentAt?: string | undefined;
  readonly include?: Condition | undefined;
  /**
   * Addresses and conditions of protected people. Only opt-outs that the CRM states apply to them.
   */
  readonly protect?: readonly (string | { readonly when: Condition })[] | undefined;
  /** At least one; ids are unique. */
  readonly channels: readonly ChannelConfig[];
  readonly webhook?: WebhookConfig | undefined;
  /** Where opt-outs on the platform are reported to; undefined: nowhere. */
  readonly returns?: Readonly<FileReturns> | undefined;
}

/** How the CRM signs its events, and the dotted path at which an event names a CRM record. */
interface WebhookConfig {
  readonly format: 'standard' | 'hubspot';
  readonly secret: string;
  readonly id: string;
}

interface ChannelConfig {
  readonly id: string;
  readonly name?: string | undefined;
  readonly subscription: FileContacts['channels'][number]['subscription'];
  /** The id of the channel that this one took over from. */
  readonly replaces?: string | undefined;
}

interface TemplatesConfig {
  readonly source: Readonly<DirectoryOptions | NdjsonOptions | HttpOptions>;
}

interface Surroundings {
  file: string;
  /** Whether the file itself sets `policy.absent`. */
  statesAbsent: boolean;
  /** The API key, from the file or from the one that apiKeyFile names. */
  apiKey: string;
  /** Returns the absolute path for a path of the file. */
  absolute(path: string): string;
}

/** Returns the configuration that a valid file stands for. */
export function settle(
  valid: File,
  { file, statesAbsent, apiKey, absolute }: Surroundings,
): Config {
  const { mirror, platform, contacts, templates, policy, guards, ledgerKeyFile } = valid;
  const { url, apiKeyFile, timeoutMs, reserve } = platform;
  const { deleteAfter, ...policies } = policy;
  const snapshot = absolute(valid.snapshot);
  return freeze({
    file,
    mirror,
    snapshot,
    ledger: {
      path: `${snapshot}-ledger`,
      keyFile: ledgerKeyFile === undefined ? `${snapshot}-ledger-key` : absolute(ledgerKeyFile),
    },
    platform: {
      url,
      apiKey,
      apiKeyFile: apiKeyFile === undefined ? undefined : absolute(apiKeyFile),
      timeoutMs,
      reserve,
    },
    contacts: contacts && settleContacts(contacts, absolute),
    templates: templates && { source: placed(templates.source, absolute) },
    policy: { ...policies, deleteAfterMs: milliseconds(deleteAfter), statesAbsent },
    guards: {
      ...byGuardKey(({ configKey }) => settleLimit(guards[configKey])),
      absentReadings: guards.absentReadings,
      absentForMs: milliseconds(guards.absentFor),
    },
    keepMs: milliseconds(valid.keep),
    schedule: valid.schedule && settleSchedule(valid.schedule, templates !== undefined),
    redis: valid.redis,
    server: valid.server,
    notices: valid.notices,
  });
}

function settleLimit({ holdFor, ...limit }: File['guards'][GuardKey]): Limit {
  return holdFor === undefined ? limit : { ...limit, holdForMs: milliseconds(holdFor) };
}

function settleSchedule(valid: NonNullable<File['schedule']>, hasTemplates: boolean): Schedule {
  const { full, fast, templates, sentinel, timezone } = valid;
  const patterns = {
    full: full ?? undefined,
    fast: fast ?? undefined,
    templates: hasTemplates ? (templates ?? undefined) : undefined,
    sentinel: sentinel ?? undefined,
  };
  return { patterns, timezone };
}

function settleContacts(
  contacts: FileContacts,
  absolute: Surroundings['absolute'],
): ContactsConfig {
  const { source, map, id, email, deleted, unsubscribed, consentAt, include, channels, webhook } =
    contacts;
  return {
    source: settleSource(source, absolute),
    map: map === undefined ? undefined : absolute(map),
    id,
    email,
    deleted,
    unsubscribed,
    consentAt,
    include,
    protect: contacts.protect,
    channels: channels.map((channel) => ({
      id: channel.id,
      name: channel.name,
      subscription: channel.subscription,
      replaces: channel.replaces,
    })),
    webhook,
    returns: contacts.returns && placedReturns(contacts.returns, absolute),
  };
}

function placedReturns(returns: FileReturns, absolute: Surroundings['absolute']): FileReturns {
  if (returns.type === 'sql') return withPaths(returns, absolute);
  return 'path' in returns ? { ...returns, path: absolute(returns.path) } : returns;
}

function settleSource(
  source: FileContacts['source'],
  absolute: Surroundings['absolute'],
): ContactsConfig['source'] {
  if (source.type === 'sql') return withPaths(source, absolute);
  if (source.type === 'tryton') return sealed(source, absolute);
  return source.type === 'salesforce' ? keyed(source, absolute) : placed(source, absolute);
}

/** Makes the path of a source absolute: it is relative to the configuration file. */
function placed<T extends { path: string } | { url: string; tokenFile?: string | undefined }>(
  source: T,
  absolute: Surroundings['absolute'],
): T {
  if ('path' in source) {
    return placeOf(source.path) === 'file' ? { ...source, path: absolute(source.path) } : source;
  }
  const { tokenFile } = source;
  return tokenFile === undefined ? source : { ...source, tokenFile: absolute(tokenFile) };
}

/** Makes the path of a key file absolute. */
function keyed(source: SalesforceOptions, absolute: Surroundings['absolute']): SalesforceOptions {
  const { privateKeyFile } = source.auth;
  if (privateKeyFile === undefined) return source;
  return { ...source, auth: { ...source.auth, privateKeyFile: absolute(privateKeyFile) } };
}

/** Makes the path of a password file absolute. */
function sealed(source: TrytonOptions, absolute: Surroundings['absolute']): TrytonOptions {
  const { passwordFile } = source;
  return passwordFile === undefined ? source : { ...source, passwordFile: absolute(passwordFile) };
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null)
    Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}
