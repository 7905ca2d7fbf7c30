import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** A text for each lint rule that must not be switched off, which breaks that rule. */
export const planted: Record<string, string> = {
  'eslint(max-params)': 'export const add = (a, b, c, d, e) => [a, b, c, d, e];',
  'eslint(no-console)': 'console.log(1);',
  'import(no-cycle)': "import { b } from './cycle.js';\nexport const a = () => b();",
  'typescript(no-explicit-any)': 'export const a = (b: any) => b;',
  'typescript(consistent-type-assertions)': 'export const a = JSON.parse(`1`) as number;',
  'typescript(no-floating-promises)': 'export function a() {\n  Promise.resolve(1);\n}',
  'typescript(no-misused-promises)': '[1].forEach(async (a) => await a);',
};

const report = z.object({
  diagnostics: z.array(z.object({ code: z.string(), filename: z.string() })),
});

/** Lints the planted texts; returns the rules found broken in the text meant for them. */
export async function lint(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-lint-'));
  try {
    const names = Object.keys(planted).map((code) => [code, code.replaceAll(/\W+/g, '-')] as const);
    mkdirSync(join(folder, 'src'));
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    for (const [code, name] of names) write(`src/${name}.ts`, planted[code] ?? '');
    write(
      'src/cycle.ts',
      "import { a } from './import-no-cycle-.js';\nexport const b = () => a();",
    );
    write('tsconfig.json', '{ "compilerOptions": { "strict": true, "target": "es2024" } }');
    const args = [oxlint, '-c', join(project, 'oxlint.config.ts'), '-f', 'json', folder];
    const { diagnostics } = report.parse(JSON.parse(await outputOf(args, project)));
    return names
      .filter(([code, name]) =>
        diagnostics.some((found) => found.code === code && found.filename.endsWith(`${name}.ts`)),
      )
      .map(([code]) => code);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const project = fileURLToPath(new URL('../..', import.meta.url));
const oxlint = join(
  dirname(createRequire(import.meta.url).resolve('oxlint/package.json')),
  'bin/oxlint',
);

/** A file of src, and the line that it has. */
type Planted = readonly [path: string, text: string];

/** Imports that the rules for folders and packages refuse, and that they accept. */
export const plantedImports: Readonly<Record<'refused' | 'accepted', readonly Planted[]>> = {
  refused: [
    ['src/domain/key.ts', "import { send } from '../http/send-request.ts';"],
    ['src/domain/entry.ts', "import type { Send } from '../http/send-request.ts';"],
    ['src/http/client.ts', "import { plan } from '../engine/report/run-summary.ts';"],
    ['src/engine/read/page.ts', "import { commit } from '../plan/commit-plan.ts';"],
    ['src/engine/context/state.ts', "import { readPart } from '../read/partial-read.ts';"],
    ['src/engine/step.ts', "import { forget } from '../engine/erasure/forget-person.ts';"],
    ['src/config/reader.ts', "import { csvSource } from '../sources/csv/csv-source.ts';"],
    ['src/emulator/api/page.ts', "import { call } from '../../platform/api-call.ts';"],
    ['src/sources/csv/list.ts', "import { list } from '../directory/directory-listing.ts';"],
    ['src/sources/contract.ts', "import { list } from './csv/csv-source.ts';"],
    ['src/records/template/rule.ts', "import { decide } from '../contact/consent/rules.ts';"],
    ['src/store/tables/row.ts', "import { stage } from '../staging/staging.ts';"],
    ['src/worker/server/page.ts', "import { run } from '../commands/sync.ts';"],
    ['src/engine/store.ts', "import Database from 'better-sqlite3';"],
    ['src/platform/request.ts', "import { request } from 'undici';"],
    ['src/worker/server/board.ts', "import { Queue } from 'bullmq';"],
    ['src/http/rate-limit/limit.ts', "import helmet from '@fastify/helmet';"],
  ],
  accepted: [
    ['src/engine/report/plan.ts', "import { Invalid } from '../../domain/errors.ts';"],
    ['src/engine/report/hash.ts', "import { createHash } from 'node:crypto';"],
    ['src/engine/report/text.ts', "import { render } from './summary-text.ts';"],
    ['src/engine/whole.ts', "import { readPart } from './read/partial-read.ts';"],
    ['src/config/options.ts', "import { options } from '../sources/csv/options.ts';"],
    ['src/emulator/api/body.ts', "import { enrol } from '../../platform/request-schemas.ts';"],
    ['src/sources/csv/open.ts', "import { open } from '../shared/files/file-origin.ts';"],
    ['src/store/open.ts', "import Database from 'better-sqlite3';"],
    ['src/http/agent.ts', "import { request } from 'undici';"],
  ],
};

/** Lints the planted imports in a folder of their own; answers those that were refused. */
export async function lintImports(): Promise<Planted[]> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-lint-'));
  try {
    symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
    cpSync(join(project, 'oxlint.config.ts'), join(folder, 'oxlint.config.ts'));
    cpSync(join(project, 'test/style/layers.ts'), join(folder, 'test/style/layers.ts'));
    writeFileSync(join(folder, 'tsconfig.json'), '{ "compilerOptions": { "strict": true } }');
    const all = [...plantedImports.refused, ...plantedImports.accepted];
    for (const [path, text] of all) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const answer = await outputOf([oxlint, '-f', 'json', 'src'], folder);
    const { diagnostics } = report.parse(JSON.parse(answer));
    const refused = diagnostics.filter(({ code }) => code === 'eslint(no-restricted-imports)');
    return all.filter(([path]) => refused.some(({ filename }) => filename.endsWith(path)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What it prints, whether or not it ends well. */
async function outputOf(args: readonly string[], cwd: string): Promise<string> {
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd, maxBuffer: 1e8 }, (_error, stdout) => done(stdout));
  });
}
