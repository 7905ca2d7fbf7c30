#!/usr/bin/env node
// Runs the command line on a Node that is new enough: this one, or else the one packaged with the
// project. This file is plain JavaScript, so that an old Node can run it and say what is missing.
// The help is printed from a file (`npm run docs` writes it), by any Node and at once.
import { existsSync, readFileSync } from 'node:fs';
import * as module from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const here = dirname(fileURLToPath(import.meta.url));
const [major, minor] = process.versions.node.split('.').map(Number);
const [word, ...more] = process.argv.slice(2);

if (more.length === 0 && (word === '--help' || word === '-h')) {
  process.stdout.write(readFileSync(join(here, 'help.txt')));
} else if (major > 22 || (major === 22 && minor >= 20)) {
  // Records stay in memory until their batch is written. If V8 measures at such a moment, it treats
  // all of them as long-lived, and about every second large run needs up to 50 % more memory. Newer
  // versions of Node are excluded because V8 may not recognize the option there.
  if (major <= 24) setFlagsFromString('--no-allocation-site-pretenuring');
  // Compiled code is cached, so that the next start takes half the time.
  module.enableCompileCache(join(here, '../node_modules/.cache/crm-mirror'));
  const source = join(here, '../src/cli.ts');
  if (existsSync(source)) await run('../src/cli.ts');
  else if (existsSync(join(here, '../dist/cli.js'))) await run('../dist/cli.js');
  else {
    console.error(
      'crm-mirror: this package was packed before it was built → ' +
        'pack it again with npm pack --ignore-scripts=false',
    );
    process.exitCode = 1;
  }
} else {
  await delegate(packagedNode());
}

async function run(program) {
  const { start } = await import(program);
  await start();
}

function packagedNode() {
  try {
    const name = `node-${process.platform}-${process.arch}/package.json`;
    return join(dirname(module.createRequire(import.meta.url).resolve(name)), 'bin/node');
  } catch {
    console.error(
      `crm-mirror needs Node 22.20 or newer, this is ${process.versions.node} → install a newer Node`,
    );
    process.exit(1);
  }
}

async function delegate(node) {
  const { spawn } = await import('node:child_process');
  const bin = join(here, '../node_modules/.bin');
  const env = { ...process.env, PATH: [dirname(node), bin, process.env.PATH].join(delimiter) };
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  // The IPC channel closes when this process ends for any reason, so the child notices.
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('error', (error) => {
    console.error(`crm-mirror could not start ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (code === null) console.error(`crm-mirror was ended by ${signal}`);
    process.exitCode = code ?? { SIGINT: 130, SIGTERM: 143 }[signal] ?? 1;
  });
}
