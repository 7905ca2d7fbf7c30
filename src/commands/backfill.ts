import type { Command } from 'commander';
import { limiting, running, writing } from '../compose/command-options.ts';
import { pass, type PassFlags } from '../app/run/run-command.ts';
import type { Shell } from '../compose/process-shell.ts';

export const options = {
  ...running,
  ...limiting,
  ...writing,
};

export const help = `
Stop it whenever you like: what was done is recorded, and the next call goes on from there.`;

/**
 * Starts a full run that deletes nobody and whose creations no guard withholds. Completed work is
 * recorded, so that another call continues from there.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  return pass(command.opts<PassFlags>(), shell, {
    mode: 'full',
    because: ['backfill'],
    writes: true,
    firstLoad: true,
  });
}
