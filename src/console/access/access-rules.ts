/** Takes who is let in from the `server` block of a configuration. */
import { dirname, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { openUsers } from './users-file.ts';
import type { AccessRules } from './visitor.ts';

/** Returns the rules of the configuration. Throws Invalid if the file of users cannot be used. */
export function accessRulesOf({ file, server }: Pick<Config, 'file' | 'server'>): AccessRules {
  const { users, proxyUser, token, viewersSeeAddresses = false } = server ?? {};
  return {
    users: users === undefined ? undefined : openUsers(resolve(dirname(file), users)),
    proxy: proxyUser && {
      header: proxyUser.header.toLowerCase(),
      operators: new Set(proxyUser.operators),
      from: new Set(proxyUser.from),
    },
    token,
    link: undefined,
    viewersSeeAddresses,
  };
}
