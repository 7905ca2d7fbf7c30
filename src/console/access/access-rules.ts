/** Takes who is let in from the `server` block of a configuration. */
import { dirname, resolve } from 'node:path';
import { Invalid } from '../../domain/errors.ts';
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

/**
 * Returns the rules for a console of several mirrors. If one of them names users, all have these
 * users; viewers see addresses only if every configuration says so. Throws Invalid if two name
 * different users.
 */
export function sharedAccessRules(configs: readonly Config[]): AccessRules {
  const usersOf = (config: Config): string =>
    JSON.stringify([usersFileOf(config), config.server?.proxyUser]);
  const none = JSON.stringify([undefined, undefined]);
  const [first, ...others] = configs.filter((config) => usersOf(config) !== none);
  const other = others.find((config) => first && usersOf(config) !== usersOf(first));
  if (first && other) {
    const what = 'name different users, and a console has the same for all mirrors';
    throw new Invalid(`${first.file} and ${other.file} ${what}`, {
      fix: 'write the same server.users and server.proxyUser, or serve each mirror by itself',
    });
  }
  const shared = first ?? configs[0];
  if (!shared) throw new Invalid('no configuration is named', { fix: 'name one with -c' });
  const viewersSeeAddresses = configs.every(({ server }) => server?.viewersSeeAddresses);
  return { ...accessRulesOf(shared), viewersSeeAddresses };
}

/** Returns the absolute path of the file of users; undefined if the configuration names none. */
export function usersFileOf({ file, server }: Pick<Config, 'file' | 'server'>): string | undefined {
  return server?.users === undefined ? undefined : resolve(dirname(file), server.users);
}
