import { codeOf, type FileText, type Finding, type Rule } from './text.ts';

/** The folders of src. */
const folders = [
  'cli',
  'commands',
  'config',
  'demo',
  'do-not-contact',
  'domain',
  'emulator',
  'engine',
  'erasure',
  'http',
  'platform',
  'rate-limit',
  'records',
  'server',
  'snapshot',
  'sources',
  'worker',
  'write-back',
];

/** The only ones that may import a package, and what belongs to it. */
const owners: Record<string, readonly string[]> = {
  'better-sqlite3': ['snapshot/', 'do-not-contact/', 'emulator/store/', 'sources/sql/'],
  pg: ['sources/sql/'],
  mysql2: ['sources/sql/'],
  undici: ['http/'],
  bullmq: ['worker/'],
  ioredis: ['worker/', 'rate-limit/shared/'],
  fastify: ['server/', 'emulator/'],
  '@fastify/': ['server/', 'emulator/'],
  '@bull-board/': ['server/'],
  'prom-client': ['server/'],
  standardwebhooks: ['server/'],
  '@marcbachmann/cel-js': ['config/schema/cel-condition.ts', 'config/schema/condition-bounds.ts'],
  re2js: ['config/schema/condition-bounds.ts'],
};

interface Import extends Finding {
  specifier: string;
}

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
    planted('src/engine/run.ts', "import Database from 'better-sqlite3';"),
    planted('src/emulator/api/answer-views.ts', "import type { Database } from 'better-sqlite3';"),
    planted('src/platform/api-call.ts', "import { request } from 'undici';"),
    planted('src/server/queue-board.ts', "import { Queue } from 'bullmq';"),
    planted('src/commands/worker.ts', "const { Redis } = await import('ioredis');"),
    planted('src/rate-limit/request-gate.ts', "import helmet from '@fastify/helmet';"),
    planted(
      'src/records/contact/observe/desired-contact.ts',
      "import { parse } from '@marcbachmann/cel-js';",
    ),
  ],
  harmless: [
    planted('src/snapshot/snapshot.ts', "import Database from 'better-sqlite3';"),
    planted('src/emulator/store/contacts.ts', "import Database from 'better-sqlite3';"),
    planted('src/http/send-request.ts', "import { request } from 'undici';"),
    planted('src/emulator/http-listener.ts', "import fastify from 'fastify';"),
    planted(
      'src/engine/run.ts',
      "// the journal needs better-sqlite3, as in import 'better-sqlite3'",
    ),
  ],
};

export const layoutRule: Rule = {
  name: 'layout',
  mend: `put it into one of ${folders.join(', ')}`,
  applies: (path) => path.startsWith('src/'),
  find: ({ path }) => {
    const top = path.split('/')[1] ?? '';
    const isFile = path.split('/').length === 2;
    const known = isFile ? top === 'cli.ts' : folders.includes(top);
    return known ? [] : [{ offset: 0, what: `${top} is not part of the layout` }];
  },
  planted: [planted('src/common/a.ts', ''), planted('src/main.ts', '')],
  harmless: [planted('src/cli.ts', ''), planted('src/sources/sql/sql-source.ts', '')],
};

function isSource(path: string): boolean {
  return path.startsWith('src/') && path.endsWith('.ts');
}

function isOf(name: string, specifier: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`);
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
