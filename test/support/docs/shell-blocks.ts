/**
 * Runs the `sh test` blocks of a page as a reader would: one after the other in one shell, in an
 * empty folder, with the command on the path and a platform behind PLATFORM_URL.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { placeOf, type CodeBlock } from './code-blocks.ts';

const program = fileURLToPath(new URL('../../../bin/crm-mirror.mjs', import.meta.url));

/** How long the blocks of one page may take together. */
const longestMs = 280_000;

export const isTested = ({ language, words }: CodeBlock): boolean =>
  language === 'sh' && words[0] === 'test';

/** Runs the blocks of one page. Returns what went wrong, with the place of the block. */
export async function runShell(blocks: readonly CodeBlock[]): Promise<string[]> {
  const top = mkdtempSync(join(tmpdir(), 'crm-mirror-docs-'));
  const { emulator, served } = await startPlatform();
  try {
    const folder = join(top, 'page');
    mkdirSync(folder);
    writeFileSync(join(top, 'script'), scriptOf(blocks, join(top, 'place')));
    const env = {
      PATH: `${programsIn(top)}:${process.env['PATH'] ?? ''}`,
      HOME: top,
      LANG: 'C.UTF-8',
      PLATFORM_URL: served.url,
      PLATFORM_API_KEY: emulator.apiKey,
    };
    const failed = await play(join(top, 'script'), { folder, env });
    return failed === undefined
      ? []
      : [`${readFileSync(join(top, 'place'), 'utf8').trim()}  ${failed}`];
  } finally {
    await served.close();
    emulator.close();
    rmSync(top, { recursive: true, force: true });
  }
}

/** Starts a platform with the channels ch_news and ch_product, and limits nobody meets. */
async function startPlatform() {
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    apiKey: 'key_docs',
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: ['*=1000/1'],
  });
  return { emulator, served: await serve(emulator, 0) };
}

/** Writes the programs of the path: `crm-mirror`, and an `npx` that needs no registry. */
function programsIn(top: string): string {
  const bin = join(top, 'bin');
  mkdirSync(bin);
  const write = (name: string, ...lines: string[]) => {
    writeFileSync(join(bin, name), ['#!/bin/sh', ...lines, ''].join('\n'));
    chmodSync(join(bin, name), 0o755);
  };
  write('crm-mirror', `exec "${process.execPath}" "${program}" "$@"`);
  write('npx', 'exec "$@"');
  return bin;
}

/**
 * Returns one script of all blocks, which notes where it is. A block with another exit code than 0
 * runs in a shell of its own, so that what it sets is gone after it.
 */
function scriptOf(blocks: readonly CodeBlock[], place: string): string {
  return blocks
    .flatMap((block) => {
      const code = exitCodeOf(block);
      const note = `echo '${placeOf(block)}' > '${place}'`;
      if (code === 0) return [note, block.text];
      const isIt = `[ $block_code = ${code} ] || { echo "exit code $block_code" >&2; exit 1; }`;
      return [note, 'set +e', '(set -e', block.text, ')', 'block_code=$?', 'set -e', isIt];
    })
    .join('\n');
}

function exitCodeOf({ words }: CodeBlock): number {
  const stated = words.find((word) => word.startsWith('exits='));
  return Number(stated?.slice('exits='.length) ?? 0);
}

/** Returns how the script failed; undefined: it did not. What it left running is ended with it. */
async function play(
  script: string,
  { folder, env }: { folder: string; env: NodeJS.ProcessEnv },
): Promise<string | undefined> {
  const shell = spawn('bash', ['-e', '-o', 'pipefail', script], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lines: string[] = [];
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => void lines.push(text));
  }
  const group = -(shell.pid ?? Number.NaN);
  const stop = () => {
    try {
      process.kill(group, 'SIGKILL');
    } catch {
      // Nobody of the group is left.
    }
  };
  const timer = setTimeout(stop, longestMs);
  const [code, signal] = await once(shell, 'exit');
  clearTimeout(timer);
  stop();
  if (code === 0) return undefined;
  const end = lines.join('').trimEnd().split('\n').slice(-15).join('\n  ');
  return `ended with ${code ?? signal}\n  ${end}`;
}
