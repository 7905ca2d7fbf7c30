/** Programs that tests need, found or fetched without a manual step, and ended with the tests. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

export const run = promisify(execFile);

/** The first of these programs, on PATH or in one of the folders. */
export async function findProgram(
  names: readonly string[],
  folders: readonly string[] = [],
): Promise<string | undefined> {
  const all = [...(process.env['PATH'] ?? '').split(delimiter), ...folders];
  for (const name of names) {
    for (const folder of all) {
      if (folder !== '' && (await exists(join(folder, name)))) return join(folder, name);
    }
  }
  return undefined;
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * The root of Debian's packages, unpacked beside the temporary folders and kept there; undefined:
 * they cannot be fetched. `has` is a file that they bring.
 */
export async function unpacked(
  name: string,
  { packages, has }: { packages: readonly string[]; has: string },
): Promise<string | undefined> {
  const shelf = process.env['TEST_PROGRAMS'] ?? tmpdir();
  const kept = join(shelf, `crm-mirror-test-${name}-${process.getuid?.() ?? 0}-${process.arch}`);
  if (await exists(join(kept, has))) return kept;
  const folder = await mkdtemp(join(shelf, `crm-mirror-${name}-package-`));
  const fetched = () => run('apt-get', ['download', ...packages], { cwd: folder });
  try {
    const root = join(folder, 'root');
    await mkdir(root);
    // The user the program runs as has to read it.
    await chmod(root, 0o755);
    await fetched().catch(async (error: unknown) => {
      if (process.getuid?.() !== 0) throw error;
      await run('apt-get', ['update']);
      await fetched();
    });
    const unpack = 'for package in *.deb; do dpkg -x "$package" root; done';
    await run('sh', ['-c', unpack], { cwd: folder });
    // Another process may have been faster.
    await rename(root, kept).catch(() => undefined);
    return (await exists(join(kept, has))) ? kept : undefined;
  } catch {
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The shell waits for the end of its input, which comes however this process ends. */
const WATCH = '"$@" >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null; wait';

export interface Launched {
  pid: number;
  stop(): Promise<void>;
}

export async function launch(
  command: readonly string[],
  options: { env?: NodeJS.ProcessEnv; uid?: number } = {},
): Promise<Launched> {
  const { env = process.env, uid } = options;
  const shell = spawn('sh', ['-c', WATCH, 'sh', ...command], {
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: tmpdir(),
    env,
    ...(uid !== undefined && { uid, gid: uid }),
  });
  const [line] = await once(shell.stdout, 'data');
  return {
    pid: Number(line),
    async stop() {
      shell.stdin.end();
      if (shell.exitCode === null) await once(shell, 'exit');
    },
  };
}

export interface Certificate {
  certificate: string;
  key: string;
}

/** For 127.0.0.1 and localhost, signed by itself; undefined without openssl. */
export async function certify(folder: string): Promise<Certificate | undefined> {
  const [certificate, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
  const names = 'subjectAltName=IP:127.0.0.1,DNS:localhost';
  const what = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test'];
  try {
    await run('openssl', [...what, '-addext', names, '-keyout', key, '-out', certificate]);
    return { certificate, key };
  } catch {
    return undefined;
  }
}

/** The longest that a server may take to start, on a busy machine too. */
const STARTING_MS = 120_000;

/** Waits until a server that was started answers. */
export async function untilAnswers(name: string, answers: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + STARTING_MS;
  while (!(await answers())) {
    if (Date.now() > end) throw new Error(`${name} does not answer`);
    await pause(25);
  }
}
