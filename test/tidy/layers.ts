import { dirname, join } from 'node:path';
import { codeOf, type FileText, type Finding, type Rule } from './text.ts';

/**
 * What the files of each layer may import, besides their own folder and Node's modules.
 * `folder/file.ts` allows that file alone; a `*` stands for one folder.
 */
const layers: Record<string, readonly string[]> = {
  model: [],
  http: ['model'],
  plan: ['model'],
  snapshot: ['model'],
  source: ['model', 'http'],
  config: ['model', 'source/*/options.ts'],
  platform: ['model', 'http'],
  kind: ['model', 'plan', 'platform'],
  sync: ['model', 'plan', 'kind', 'source', 'snapshot', 'platform'],
  queue: ['model', 'http', 'sync', 'snapshot'],
  server: ['model', 'sync', 'snapshot', 'plan', 'queue'],
  emulator: ['model', 'platform/request.ts'],
};
const everything = Object.keys(layers);
layers['command'] = everything;
layers['cli.ts'] = [...everything, 'command'];

/** Their folders are seams: one does not know the others, nor does what they have in common. */
const seams = ['kind', 'source'];

/** The only ones that may import a package, and what belongs to it. */
const owners: Record<string, readonly string[]> = {
  'better-sqlite3': ['snapshot/', 'emulator/store/', 'source/sql/'],
  pg: ['source/sql/'],
  mysql2: ['source/sql/'],
  undici: ['http/'],
  bullmq: ['queue/'],
  ioredis: ['queue/'],
  fastify: ['server/', 'emulator/'],
  '@fastify/': ['server/', 'emulator/'],
  '@bull-board/': ['server/'],
  'prom-client': ['server/'],
  standardwebhooks: ['server/'],
  '@marcbachmann/cel-js': ['config/condition.ts', 'config/condition-bounds.ts'],
  re2js: ['config/condition-bounds.ts'],
};

interface Import extends Finding {
  specifier: string;
}

export const layerRule: Rule = {
  name: 'layers',
  mend: 'move what is shared to a lower layer, or have the composition root pass it in',
  applies: isSource,
  find: ({ path, text }) =>
    importsOf(text).filter(({ specifier }) => {
      if (!specifier.startsWith('.')) return false;
      return !allows(path.slice(4), join(dirname(path), specifier).slice(4));
    }),
  planted: [
    planted('src/model/key.ts', "import { send } from '../http/send.ts';"),
    planted('src/http/send.ts', "export { Plan } from '../plan/plan.ts';"),
    planted('src/plan/plan.ts', "import type { Recorded } from '../snapshot/recorded.ts';"),
    planted('src/config/load.ts', "import { csvSource } from '../source/csv/csv.ts';"),
    planted('src/emulator/view.ts', "import { call } from '../platform/call.ts';"),
    planted('src/sync/run.ts', "const { send } = await import('../http/send.ts');"),
    planted('src/source/csv/csv.ts', "import {\n  list,\n} from '../directory/listing.ts';"),
    planted('src/kind/contact/decide.ts', "import { decide } from '../template/decide.ts';"),
    planted('src/kind/kind.ts', "import { contact } from './contact/contact.ts';"),
    planted('src/server/health.ts', "import '../command/sync.ts';"),
    planted('src/command/sync.ts', "import { main } from '../cli.ts';"),
  ],
  harmless: [
    planted('src/plan/plan.ts', "import { Invalid } from '../model/errors.ts';"),
    planted('src/plan/plan.ts', "import { createHash } from 'node:crypto';"),
    planted('src/plan/plan.ts', "import { render } from './render.ts';"),
    planted('src/config/load.ts', "import { options } from '../source/csv/options.ts';"),
    planted('src/emulator/view.ts', "import { enrol } from '../platform/request.ts';"),
    planted('src/emulator/operation/read.ts', "import { view } from '../view.ts';"),
    planted('src/source/csv/csv.ts', "import { open } from '../file.ts';"),
    planted('src/kind/contact/decide.ts', "import type { Kind } from '../kind.ts';"),
    planted('src/cli.ts', "const run = () => import('./command/sync.ts');"),
    planted('src/model/key.ts', "// import { send } from '../http/send.ts';"),
    planted('src/model/key.ts', "const text = `import x from '../http/send.ts'`;"),
  ],
};

export const ownerRule: Rule = {
  name: 'owners',
  mend: `use its owner: ${Object.entries(owners)
    .map(([name, folders]) => `${name} is for ${folders.join(', ')}`)
    .join('; ')}`,
  applies: isSource,
  find: ({ path, text }) =>
    importsOf(text).filter(({ specifier }) => {
      const name = Object.keys(owners).find((owner) =>
        owner.endsWith('/') ? specifier.startsWith(owner) : isOf(owner, specifier),
      );
      return name && !owners[name]?.some((folder) => path.startsWith(`src/${folder}`));
    }),
  planted: [
    planted('src/sync/run.ts', "import Database from 'better-sqlite3';"),
    planted('src/emulator/view.ts', "import type { Database } from 'better-sqlite3';"),
    planted('src/platform/call.ts', "import { request } from 'undici';"),
    planted('src/server/board.ts', "import { Queue } from 'bullmq';"),
    planted('src/command/worker.ts', "const { Redis } = await import('ioredis');"),
    planted('src/http/gate.ts', "import helmet from '@fastify/helmet';"),
    planted('src/kind/contact/desire.ts', "import { parse } from '@marcbachmann/cel-js';"),
  ],
  harmless: [
    planted('src/snapshot/snapshot.ts', "import Database from 'better-sqlite3';"),
    planted('src/emulator/store/contacts.ts', "import Database from 'better-sqlite3';"),
    planted('src/http/send.ts', "import { request } from 'undici';"),
    planted('src/emulator/serve.ts', "import fastify from 'fastify';"),
    planted(
      'src/sync/run.ts',
      "// the journal needs better-sqlite3, as in import 'better-sqlite3'",
    ),
  ],
};

export const layoutRule: Rule = {
  name: 'layout',
  mend: `put it into one of ${Object.keys(layers).join(', ')}`,
  applies: (path) => path.startsWith('src/'),
  find: ({ path }) => {
    const top = path.split('/')[1] ?? '';
    const isFile = path.split('/').length === 2;
    const known = Object.hasOwn(layers, top) && isFile === top.endsWith('.ts');
    return known ? [] : [{ offset: 0, what: `${top} is not part of the layout` }];
  },
  planted: [planted('src/common/a.ts', ''), planted('src/main.ts', '')],
  harmless: [planted('src/cli.ts', ''), planted('src/source/sql/sql.ts', '')],
};

function isSource(path: string): boolean {
  return path.startsWith('src/') && path.endsWith('.ts');
}

function isOf(name: string, specifier: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`);
}

function allows(from: string, to: string): boolean {
  const layer = from.split('/')[0] ?? '';
  const target = to.split('/')[0] ?? '';
  if (layer === target) return !crossesSeam(from, to);
  return (layers[layer] ?? []).some((allowed) =>
    allowed.endsWith('.ts') ? isFile(allowed, to) : allowed === target,
  );
}

/** Into another folder of a seam, or from the seam's own files into one of its folders. */
function crossesSeam(from: string, to: string): boolean {
  const [layer = '', mine, ...inFolder] = from.split('/');
  const [, theirs, ...rest] = to.split('/');
  if (!seams.includes(layer) || rest.length === 0) return false;
  return inFolder.length === 0 || mine !== theirs;
}

function isFile(allowed: string, path: string): boolean {
  const [wanted, given] = [allowed.split('/'), path.split('/')];
  return (
    wanted.length === given.length && wanted.every((part, i) => part === '*' || part === given[i])
  );
}

/** All imports, re-exports and import() of a text, comments and strings aside. */
function importsOf(text: string): Import[] {
  const found = [...codeOf(text).matchAll(/\b(?:from|import|require)\s*\(?\s*(['"`])( *)\1/g)];
  return found.map((match) => {
    const end = match.index + match[0].length - 1;
    const specifier = text.slice(end - (match[2]?.length ?? 0), end);
    return { offset: end, specifier, what: `imports ${specifier}` };
  });
}

function planted(path: string, text: string): FileText {
  return { path, text: `\n${text}\n` };
}
