import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** A text for each lint rule that must not be switched off, which breaks that rule. */
export const planted: Record<string, string> = {
  'eslint(max-lines-per-function)': `export function long() {\n${'  step();\n'.repeat(60)}}`,
  'eslint(max-lines)': 'step();\n'.repeat(301),
  'eslint(max-params)': 'export const add = (a, b, c, d) => [a, b, c, d];',
  'eslint(no-console)': 'console.log(1);',
  'import(no-cycle)': "import { b } from './cycle.js';\nexport const a = () => b();",
  'typescript(no-explicit-any)': 'export const a = (b: any) => b;',
  'typescript(consistent-type-assertions)': 'export const a = JSON.parse(`1`) as number;',
  'typescript(no-floating-promises)': 'export function a() {\n  Promise.resolve(1);\n}',
  'typescript(no-misused-promises)': '[1].forEach(async (a) => await a);',
};

const report = z.object({
  diagnostics: z.array(
    z.object({
      code: z.string(),
      filename: z.string(),
      message: z.string(),
      labels: z.array(z.object({ span: z.object({ line: z.number() }) })),
    }),
  ),
});

/**
 * Lints the planted texts and src/ with the project's configuration. `planted` names the rules that
 * were found broken in the text meant for them, `project` the places of src/ that are too long.
 */
export async function lint(): Promise<{ planted: string[]; project: string[] }> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
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
    const oxlint = join(
      dirname(createRequire(import.meta.url).resolve('oxlint/package.json')),
      'bin/oxlint',
    );
    const args = [
      oxlint,
      '-c',
      join(root, '.oxlintrc.json'),
      '-f',
      'json',
      folder,
      join(root, 'src'),
    ];
    const { diagnostics } = report.parse(JSON.parse(await outputOf(args, root)));
    return {
      planted: names
        .filter(([code, name]) =>
          diagnostics.some((found) => found.code === code && found.filename.endsWith(`${name}.ts`)),
        )
        .map(([code]) => code),
      project: diagnostics
        .filter(
          ({ code, filename }) => code.startsWith('eslint(max-') && filename.startsWith('src/'),
        )
        .map(({ code, filename, message, labels: [label] }) => {
          const place = `${filename}:${label?.span.line ?? 1}`;
          return `${place}  ${code}: ${message} → split it by subject, or name the parameters`;
        }),
    };
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
