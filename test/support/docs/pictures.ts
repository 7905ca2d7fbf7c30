/**
 * Makes the pictures of the pages anew: `npm run pictures`. Those of a terminal and of a browser
 * show a real run; they need `script`, `chromium` and `redis-server`.
 */
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pipelinePicture } from './pipeline-picture.ts';
import { takeEmulatorPage, takeStatusPage } from './screenshots.ts';
import { terminalPicture } from './terminal-recording.ts';

const folder = fileURLToPath(new URL('../../../docs/pictures', import.meta.url));
const bytesAtMost = 150_000;

const pictures: Readonly<Record<string, (file: string) => void | Promise<void>>> = {
  'pipeline.svg': (file) => writeFileSync(file, pipelinePicture()),
  'terminal.svg': async (file) => writeFileSync(file, await terminalPicture()),
  'status-page.png': takeStatusPage,
  'emulator.png': takeEmulatorPage,
};

mkdirSync(folder, { recursive: true });
for (const [name, make] of Object.entries(pictures)) {
  const file = join(folder, name);
  await make(file);
  const { size } = statSync(file);
  if (size > bytesAtMost) throw new Error(`${name} has ${size} bytes, at most ${bytesAtMost}`);
  process.stdout.write(`docs/pictures/${name}  ${size} bytes\n`);
}
