/**
 * The whole product in one go: the embedded emulator, a sample CRM export, three acts, and what
 * happened explained. Nothing is taken on faith: every sentence about a person is compared with
 * what the platform was asked and now shows, and one that does not hold ends the demo with 1.
 */
import { relative } from 'node:path';
import type { Command } from 'commander';
import { changeCount, type Summary } from '../plan/summary.ts';
import {
  claimsOfActOne,
  claimsOfActTwo,
  templatesOfActOne,
  templatesOfActTwo,
} from './demo/cast.ts';
import { changeBothSides } from './demo/change.ts';
import { about, compare, type Told } from './demo/claim.ts';
import { makeFolder, type Folder } from './demo/folder.ts';
import { farewell } from './demo/farewell.ts';
import { pass, type Passed } from './demo/pass.ts';
import { safety } from './demo/safety.ts';
import { openStage, type Stage } from './demo/stage.ts';
import { heading, page, type Page } from './demo/page.ts';
import type { Shell } from './shell.ts';

interface Flags {
  dir?: string;
}

export function options(command: Command): void {
  command.option('--dir <folder>', 'a new folder for what is left (default: var/demo-<n>)');
}

/** 0: everything happened as it is told; 1: something did not, and it is named. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const folder = makeFolder(command.opts<Flags>().dir);
  const stage = await openStage(folder, shell);
  const demo: Demo = { stage, folder, shell, page: page(shell), surprises: [] };
  try {
    await actOne(demo);
    await actTwo(demo);
    await actThree(demo);
    farewell(demo);
  } finally {
    await stage.close();
  }
  return verdict(demo);
}
