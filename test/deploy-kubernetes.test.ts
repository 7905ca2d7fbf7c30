/** The manifests for Kubernetes: each is valid by the schema of its kind, and they fit together. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { CronJob } from 'kubernetes-models/batch/v1/CronJob';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import { parseAllDocuments } from 'yaml';
import { makeFolder } from './support/config/config-folder.ts';

const deploy = join(import.meta.dirname, '../config/deploy');

/** How each kind is read from a document of YAML. */
const kinds = {
  ConfigMap: (value: object) => new ConfigMap(value),
  CronJob: (value: object) => Object.assign(new CronJob(), value),
  Job: (value: object) => new Job(value),
  PersistentVolumeClaim: (value: object) => new PersistentVolumeClaim(value),
  PodDisruptionBudget: (value: object) => new PodDisruptionBudget(value),
  Secret: (value: object) => new Secret(value),
  Service: (value: object) => new Service(value),
  StatefulSet: (value: object) => new StatefulSet(value),
};

function isKnown(kind: unknown): kind is keyof typeof kinds {
  return typeof kind === 'string' && kind in kinds;
}

/** The documents of a manifest. Throws for a kind that is not known here. */
function manifest(name: string) {
  return parseAllDocuments(readFileSync(join(deploy, name), 'utf8')).map((document) => {
    const value: unknown = document.toJS();
    if (typeof value !== 'object' || value === null || !('kind' in value)) throw new Error(name);
    if (!isKnown(value.kind)) throw new Error(`${name}: ${String(value.kind)} is not known`);
    return kinds[value.kind](value);
  });
}

const manifests = ['kubernetes.yaml', 'kubernetes-fleet.yaml'];

describe.each(manifests)('%s', (name) => {
  const documents = manifest(name).map((one) => [one.kind, one.metadata?.name, one] as const);

  test.each(documents)('%s %s is valid by its schema', (_kind, _name, one) => {
    expect(() => one.validate()).not.toThrow();
  });
});

test('a mistake in a manifest is found', () => {
  const spec = { maxUnavailable: { percent: 50 } };
  const wrong = kinds.PodDisruptionBudget({ metadata: { name: 'a' }, spec });
  expect(() => wrong.validate()).toThrow('maxUnavailable');
});

describe('the fleet', () => {
  const documents = manifest('kubernetes-fleet.yaml');
  const set = documents.find((one) => one instanceof StatefulSet);
  const budget = documents.find((one) => one instanceof PodDisruptionBudget);
  const map = documents.find((one) => one instanceof ConfigMap);
  const [environment, files] = documents.filter((one) => one instanceof Secret);
  const { folder, write, load, remove } = makeFolder();
  afterAll(remove);

  test('has several workers, of which one at most is taken away', () => {
    expect(set?.spec?.replicas).toBeGreaterThan(1);
    expect(budget?.spec?.maxUnavailable).toBe(1);
    expect(budget?.spec?.selector).toEqual(set?.spec?.selector);
    expect(set?.spec?.template.metadata?.labels).toEqual(set?.spec?.selector.matchLabels);
    expect(set?.spec?.template.spec?.containers[0]?.args).toEqual([
      'worker',
      '--mirrors',
      '/config',
    ]);
  });

  test('gives all workers one volume, and each a name', () => {
    const claim = documents.find((one) => one instanceof PersistentVolumeClaim);
    expect(claim?.spec?.accessModes).toEqual(['ReadWriteMany']);
    expect(set?.spec?.template.spec?.volumes).toContainEqual({
      name: 'data',
      persistentVolumeClaim: { claimName: claim?.metadata?.name },
    });
    const headless = documents.find((one) => one.metadata?.name === set?.spec?.serviceName);
    expect(headless).toMatchObject({ kind: 'Service', spec: { clusterIP: 'None' } });
  });

  test('has mirrors that are valid with the defaults, and secrets where they are mounted', () => {
    const texts = Object.entries(map?.data ?? {});
    for (const name of Object.keys(files?.stringData ?? {})) write(name, 'key');
    const inFolder = (text: string): string => text.replaceAll('/secrets/', `${folder}/`);
    for (const [name, text] of texts) write(name, inFolder(text));
    const mirrors = texts.filter(([name]) => name !== 'defaults.yaml');
    expect(mirrors.length).toBeGreaterThan(0);
    for (const [, text] of mirrors) {
      const config = load(inFolder(text), environment?.stringData ?? {});
      expect(config).toMatchObject({ server: { token: 'change-me' } });
      expect(config.snapshot).toMatch(/^\/data\//);
    }
    const mounts = set?.spec?.template.spec?.containers[0]?.volumeMounts ?? [];
    expect(mounts.map(({ mountPath }) => mountPath)).toEqual([
      '/data',
      '/config',
      '/secrets',
      '/tmp',
    ]);
  });
});
