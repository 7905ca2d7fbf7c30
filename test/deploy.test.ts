/** What is shipped for containers: files that fit each other, the command line and this Node. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { main } from '../src/cli.ts';
import { makeFolder } from './support/config/config-folder.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const service = z.object({
  image: z.string(),
  command: z.array(z.string()),
  read_only: z.literal(true),
  volumes: z.array(z.string()).min(1),
  user: z.string().optional(),
});
const compose = z
  .object({ services: z.record(z.string(), service), secrets: z.record(z.string(), z.unknown()) })
  .parse(parse(read('config/deploy/compose.yaml'), { merge: true }));

const container = z.object({
  args: z.array(z.string()),
  securityContext: z.object({ readOnlyRootFilesystem: z.literal(true) }),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
});
const pod = z.object({
  spec: z.object({
    securityContext: z.object({ runAsNonRoot: z.literal(true), runAsUser: z.number() }),
    containers: z.array(container).length(1),
    volumes: z.array(z.object({ name: z.string() })),
  }),
});
const workload = z.object({
  backoffLimit: z.number().optional(),
  concurrencyPolicy: z.string().optional(),
  suspend: z.boolean().optional(),
  volumeClaimTemplates: z.array(z.object({ metadata: z.object({ name: z.string() }) })).default([]),
  template: pod,
});
const documents = parseAllDocuments(read('config/deploy/kubernetes.yaml')).map((document) => {
  const [error] = document.errors;
  if (error) throw error;
  const head = z.object({ kind: z.string(), metadata: z.object({ name: z.string() }) });
  const value: unknown = document.toJS();
  return { ...head.parse(value), value };
});
const strings = z.record(z.string(), z.string());

/** Of a kind and a name, what stands under a key of it. */
function under<T extends z.ZodType>(kind: string, key: string, schema: T): z.output<T>[] {
  return documents
    .filter((document) => document.kind === kind)
    .map(({ value }) => z.record(z.string(), z.unknown()).parse(value)[key])
    .map((value) => schema.parse(value));
}

const workloads = [
  ...under('StatefulSet', 'spec', workload),
  ...under('Job', 'spec', workload),
  ...under('CronJob', 'spec', z.object({ jobTemplate: z.object({ spec: workload }) })).map(
    ({ jobTemplate }) => jobTemplate.spec,
  ),
];
const ours = Object.values(compose.services).filter(({ image }) => image === 'crm-mirror');
const lines = [
  ...ours.map(({ command }) => command),
  ...workloads.flatMap(({ template }) => template.spec.containers.map(({ args }) => args)),
];

test.each(lines)('the command line knows %s %s %s', async (...line) => {
  const [name = '', ...rest] = line;
  const said: string[] = [];
  const signal = new AbortController().signal;
  const print = (text: string): void => void said.push(text);
  const shell = { env: {}, print, note: print, progress: print, terminal: false };
  const argv = [name, '--help'];
  expect(await main(argv, { ...shell, interactive: false, stop: signal, abort: signal })).toBe(0);
  for (const flag of rest.filter((word) => word.startsWith('-'))) {
    expect(said.join('\n')).toContain(`${flag}, --`);
  }
});

describe('mirror.yaml', () => {
  const text = read('config/deploy/mirror.yaml');
  const [environment = {}] = under('Secret', 'stringData', strings);
  const { folder, load, write, remove } = makeFolder();
  afterAll(remove);

  test('is valid with the variables of the secret', () => {
    write('platform-api-key', 'key');
    const config = load(text.replaceAll('/secrets/', `${folder}/`), environment);
    expect(config).toMatchObject({ server: { host: '0.0.0.0', token: 'change-me' } });
    expect(config.snapshot.startsWith('/data/')).toBe(true);
  });

  test('is the file given to Kubernetes', () => {
    expect(under('ConfigMap', 'data', strings)).toEqual([{ 'mirror.yaml': text }]);
  });

  test('finds its secrets where they are mounted', () => {
    const files = [...text.matchAll(/\/secrets\/([\w-]+)/g)]
      .map(([, name = '']) => name)
      .toSorted();
    expect(Object.keys(under('Secret', 'stringData', strings)[1] ?? {}).toSorted()).toEqual(files);
    expect(Object.keys(compose.secrets).toSorted()).toEqual(files);
    const mounted = workloads.flatMap(({ template }) => template.spec.containers);
    for (const { volumeMounts } of mounted) {
      const paths = volumeMounts.map(({ mountPath }) => mountPath).toSorted();
      expect(paths).toEqual(['/config', '/data', '/secrets', '/tmp']);
    }
  });
});

test('every mounted volume exists', () => {
  for (const { template, volumeClaimTemplates } of workloads) {
    const names = [...template.spec.volumes, ...volumeClaimTemplates.map((one) => one.metadata)];
    for (const { volumeMounts } of template.spec.containers) {
      expect(names.map(({ name }) => name).toSorted()).toEqual(
        volumeMounts.map(({ name }) => name).toSorted(),
      );
    }
  }
});

test('a job runs one at a time, and is not restarted after a failure', () => {
  expect(under('CronJob', 'spec', z.object({ concurrencyPolicy: z.string() }))).toEqual([
    { concurrencyPolicy: 'Forbid' },
  ]);
  expect(workloads.map(({ backoffLimit }) => backoffLimit)).toEqual([undefined, 0, 0]);
});

describe('Dockerfile', () => {
  const steps = read('Dockerfile').split('\n');
  const ofKind = (name: string) => steps.filter((step) => step.startsWith(`${name} `));

  test('uses this Node version, and ends as a user who is not root', () => {
    const [bases, major] = [ofKind('FROM'), read('.nvmrc').trim()];
    expect(bases.every((step) => step.includes(`node:${major}-`))).toBe(true);
    expect(ofKind('USER')).toEqual(['USER node']);
  });

  test('keeps compiled code for the user who starts it', () => {
    const compiling = steps.findIndex((step) => step.includes('crm-mirror demo'));
    expect(compiling).toBeGreaterThan(steps.indexOf('USER node'));
    expect(read('Dockerfile')).toContain('-o node -g node /data node_modules/.cache/crm-mirror');
  });

  test('copies existing files that are not ignored, and no deployment files', () => {
    const ignored = read('.dockerignore').split('\n');
    const copied = ofKind('COPY').filter((step) => !step.includes('--from'));
    for (const name of copied.flatMap((step) => step.split(' ').slice(1, -1))) {
      expect([name, existsSync(join(root, name)), ignored.includes(`!${name}`)]).toEqual([
        name,
        true,
        true,
      ]);
    }
    expect(ignored).toContain('config/deploy');
  });
});

describe('healthy', () => {
  const { write, remove } = makeFolder();
  afterAll(remove);

  /** Its exit code, of a process with these words, and a server that answers so. */
  async function ask(words: string[], status: number): Promise<unknown> {
    const server = createServer((_, response) => void response.writeHead(status).end());
    onTestFinished(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const bound = server.address();
    const port = typeof bound === 'object' && bound ? bound.port : 0;
    const file = write('cmdline', `${words.join('\0')}\0`);
    const url = `http://127.0.0.1:${port}/healthz`;
    const child = spawn(process.execPath, [join(root, 'bin/healthy.mjs'), file, url]);
    const [code] = await once(child, 'exit');
    return code;
  }

  test.each([
    [['node', 'crm-mirror', 'worker', '-c', 'x'], 200, 0],
    [['node', 'crm-mirror', 'worker', '-c', 'x'], 500, 1],
    [['node', 'crm-mirror', 'sync', '-c', 'worker.yaml'], 500, 0],
  ])('%j with a server that answers %s: %s', async (words, status, code) => {
    expect(await ask(words, status)).toBe(code);
  });
});
