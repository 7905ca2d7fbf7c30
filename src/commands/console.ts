/** Serves the console beside runs from cron, on this machine, until it is asked to stop. */
import { randomBytes } from 'node:crypto';
import { type Called, configOption } from '../compose/command-options.ts';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';
import { refuseTwins, loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import { createServer } from '../worker/server/http-server.ts';
import { sharedAccessRules, usersFileOf } from '../console/access/access-rules.ts';
import { addUser, hashPassword, type Role, roles } from '../console/access/users-file.ts';
import { consoleMirror } from '../console/view/console-mirror.ts';
import { serveConsole } from '../console/console-routes.ts';
import { codeOfStop, exitCode, explain } from '../compose/output/failure-report.ts';
import { operatorName, type Shell, stopped } from '../compose/process-shell.ts';

const defaultPort = 8081;

export const options = {
  'config <file...>': () => configOption('several'),
  'port <n>': `port to listen on; 0 picks a free one (default: ${defaultPort})`,
  'host <address>': 'address to listen on (default: 127.0.0.1)',
  'add-user <name>': 'add a user to server.users, print a new password, and end',
  'role <role>': { text: 'what that user may do', choices: roles, default: 'viewer' },
};

export const help = `
Reads the snapshot only, so it works beside runs from cron and beside a worker, which has the same
console in its own server. Without a file of users (server.users), it prints a link that lets only
you in, and you may do everything that the commands can.`;

export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const configs = flags.config.map((file) => loadConfig(file, shell.env));
  const [first] = configs;
  if (!first) throw new Invalid('no configuration is named', { fix: 'name one with -c' });
  if (flags.addUser !== undefined) {
    return add(first, { name: flags.addUser, role: flags.role }, shell);
  }
  refuseTwins(configs);
  const access = sharedAccessRules(configs);
  const key = randomBytes(24).toString('base64url');
  const isOwn = access.users === undefined && access.proxy === undefined;
  const user = { name: operatorName(shell), role: 'operator', seesAddresses: true } as const;
  const failed = (error: unknown): void =>
    shell.note(`crm-mirror: console: ${explain(error).text}`);
  const mirrors = configs.map((config) => consoleMirror(config, shell, { clock: systemClock }));
  const { host = '127.0.0.1', port = `${defaultPort}` } = flags;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new Invalid(`--port ${port}: it is no port`, { fix: 'write a number from 0 to 65535' });
  }
  const server = createServer({
    host,
    port: Number(port),
    clock: systemClock,
    failed,
    register: (app) =>
      serveConsole(app, {
        mirrors: () => mirrors,
        access: isOwn ? { ...access, link: { key, user } } : access,
        clock: systemClock,
        secret: randomBytes(32).toString('hex'),
        random: randomBytes,
        failed,
      }),
  });
  try {
    const address = await server.listen();
    shell.print(isOwn ? `${address}/sign-in?key=${key}` : address);
    shell.note('crm-mirror: the console serves until you press Ctrl-C');
    await stopped(shell.stop);
  } finally {
    await server.close();
  }
  return codeOfStop(shell.stop.reason);
}

async function add(config: Config, { name, role }: { name: string; role: Role }, shell: Shell) {
  const configured = usersFileOf(config);
  const file = configured ?? join(dirname(config.file), 'users.yaml');
  const password = randomBytes(15).toString('base64url');
  addUser(file, { name, role, password: await hashPassword(password, randomBytes(16)) });
  shell.print(`${name} (${role}) is in ${file}. The password, shown only now: ${password}`);
  if (configured === undefined) {
    shell.note(`crm-mirror: ${config.file} does not name this file yet: add server.users`);
  }
  return exitCode('done');
}
