/** A small mirror on an emulator, for the pictures. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEmulator, type Emulator } from '../../../src/emulator/emulator.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { findProgram } from '../program.ts';

/** The command line, from the source. */
export const program = fileURLToPath(new URL('../../../bin/crm-mirror.mjs', import.meta.url));

export interface PictureStage {
  /** The working directory; the configuration is where commands look for it. */
  folder: string;
  config: string;
  snapshot: string;
  url: string;
  emulator: Emulator;
  /** Writes the export of the CRM: rows of id, email, newsletter, product. */
  export(...rows: string[]): void;
  /** Calls the command line to its end, whatever its exit code. */
  call(...argv: string[]): Promise<void>;
  close(): Promise<void>;
}

/** Makes the folder and starts the platform, with these limits. */
export async function openPictureStage(
  mirror: string,
  limits = ['contacts.enrol=30/60', '*=200/10'],
): Promise<PictureStage> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-pictures-'));
  const config = join(folder, 'config/mirror.yaml');
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits,
  });
  const { url, close } = await serve(emulator, 0);
  const text = [
    `mirror: ${mirror}`,
    `snapshot: ../${mirror}.sqlite`,
    `platform: { url: "${url}", apiKey: "${emulator.apiKey}" }`,
    'contacts:',
    '  source: { type: csv, path: ../people.csv }',
    '  id: id',
    '  email: email',
    '  channels:',
    '    - { id: ch_news, name: Newsletter, subscription: newsletter }',
    '    - { id: ch_product, name: Product updates, subscription: product }',
  ];
  mkdirSync(join(folder, 'config'));
  writeFileSync(config, `${text.join('\n')}\n`);
  return {
    folder,
    config,
    snapshot: join(folder, `${mirror}.sqlite`),
    url,
    emulator,
    export(...rows) {
      const all = ['id,email,newsletter,product', ...rows];
      writeFileSync(join(folder, 'people.csv'), `${all.join('\n')}\n`);
    },
    async call(...argv) {
      await once(spawn(process.execPath, [program, ...argv], { cwd: folder }), 'exit');
    },
    async close() {
      await close();
      emulator.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Returns the path of a program. Throws one line that says what is missing. */
export async function needed(...names: string[]): Promise<string> {
  const found = await findProgram(names);
  if (found === undefined) throw new Error(`the pictures need ${names.join(' or ')} on the path`);
  return found;
}
