/** Takes who is let in from the `server` block of a configuration. */
import { dirname, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { openUsers } from './users-file.ts';
import type { AccessRules } from './visitor.ts';

/** Returns the rules of the configuration. Throws Invalid if the file of users cannot be used. */
export function accessRulesOf(config: Pick<Config, 'file' | 'server'>): AccessRules {
  const { server } = config;
  const { proxyUser, token, publicUrl = '', viewersSeeAddresses = false } = server ?? {};
  const address = URL.parse(publicUrl);
  const file = usersFileOf(config);
  return {
    users: file === undefined ? undefined : openUsers(file),
    proxy: proxyUser && {
      header: proxyUser.header.toLowerCase(),
      operators: new Set(proxyUser.operators),
      from: new Set(proxyUser.from),
    },
    proxies: new Set([...(server?.proxies ?? []), ...(proxyUser?.from ?? [])]),
    token,
    link: undefined,
    viewersSeeAddresses,
    secureHost: address?.protocol === 'https:' ? address.host : undefined,
  };
}

/** Returns the absolute path of the file of users; undefined if the configuration names none. */
export function usersFileOf({ file, server }: Pick<Config, 'file' | 'server'>): string | undefined {
  return server?.users === undefined ? undefined : resolve(dirname(file), server.users);
}
