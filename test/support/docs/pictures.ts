/**
 * Makes the pictures of the pages anew: `npm run pictures`. Those of a terminal and of a browser
 * show a real run; they need `script`, `chromium` and `redis-server`.
 */
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  pipelinePicture,
  takeConsole,
  takeEmulatorPage,
  terminalPicture,
} from './picture-stage.ts';

const folder = fileURLToPath(new URL('../../../docs/pictures', import.meta.url));
const bytesAtMost = 200_000;

const pictures: Readonly<Record<string, (file: string) => void | Promise<void>>> = {
  'pipeline.svg': (file) => writeFileSync(file, pipelinePicture()),
  'terminal.svg': async (file) => writeFileSync(file, await terminalPicture()),
  'console-overview.png': takeConsole({ path: '', width: 1100, height: 1180 }),
  'console-approvals.png': takeConsole({ path: 'approvals', height: 690 }),
  'console-person.png': takeConsole({
    path: 'people',
    follow: 'cara@example.com',
    width: 420,
    height: 860,
    colorScheme: 'dark',
  }),
  'emulator.png': takeEmulatorPage,
};

mkdirSync(folder, { recursive: true });
// Names of pictures as arguments: only these.
const wanted = process.argv.slice(2);
for (const [name, make] of Object.entries(pictures)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const file = join(folder, name);
  await make(file);
  const { size } = statSync(file);
  if (size > bytesAtMost) throw new Error(`${name} has ${size} bytes, at most ${bytesAtMost}`);
  process.stdout.write(`docs/pictures/${name}  ${size} bytes\n`);
}
