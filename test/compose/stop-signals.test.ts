/** What a first, a repeated and a later signal ask for, in a process of its own. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const module = new URL('../../src/compose/process-shell.ts', import.meta.url);

test('the first signal stops, its copy changes nothing, and one after a second aborts', async () => {
  const script = `
    import { stopSignals } from ${JSON.stringify(module.href)};
    const { stop, abort } = stopSignals();
    const said = [];
    const send = () => {
      process.emit('SIGTERM', 'SIGTERM');
      said.push([stop.aborted, abort.aborted]);
    };
    send();
    send();
    setTimeout(() => {
      send();
      process.stdout.write(JSON.stringify(said));
      process.exit();
    }, 1_100);`;
  const words = ['--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  expect(JSON.parse(stdout)).toEqual([
    [true, false],
    [true, false],
    [true, true],
  ]);
});
