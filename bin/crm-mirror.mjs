#!/usr/bin/env node
// Runs the command line on a Node that is new enough: this one, else the one packaged with the
// project. Plain JavaScript, so that an old Node can read it and say what is missing.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as module from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const here = dirname(fileURLToPath(import.meta.url));
const [major, minor] = process.versions.node.split('.').map(Number);

if (major > 22 || (major === 22 && minor >= 20)) {
  // What is read lives until its batch is written. From a moment when all of it lives, V8 concludes
  // that it stays for good: every other large run would take half as much memory again. Of a Node
  // that nobody has tried it with, V8 might say that it knows no such option.
  if (major <= 24) setFlagsFromString('--no-allocation-site-pretenuring');
  // What was compiled once is kept, so that the next start takes half the time.
  module.enableCompileCache(join(here, '../node_modules/.cache/crm-mirror'));
  const source = join(here, '../src/cli.ts');
  const { start } = await import(existsSync(source) ? '../src/cli.ts' : '../dist/cli.js');
  await start();
} else {
  delegate(packagedNode());
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

function delegate(node) {
  const bin = join(here, '../node_modules/.bin');
  const env = { ...process.env, PATH: [dirname(node), bin, process.env.PATH].join(delimiter) };
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  // The channel tells the child when this process is gone, however it went.
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
