/** A mirror to rehearse: what a rehearsal leaves behind, and what it foretells of people. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { mirrored, type Mirrored, type MirroredOptions, type Said } from './mirrored-contacts.ts';

/** The folders of copies that exist now. */
export function copyFolders(): string[] {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith('crm-mirror-rehearsal-'));
  return names.map((name) => join(tmpdir(), name));
}

/** Gives a test a folder for temporary files that no other test uses. */
function ownTemporaryFolder(): void {
  const before = process.env['TMPDIR'];
  const folder = join(tmpdir(), `rehearsed-${process.pid}-${Math.random().toString(36).slice(2)}`);
  mkdirSync(folder);
  process.env['TMPDIR'] = folder;
  onTestFinished(() => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(folder, { recursive: true, force: true });
  });
}

/** A mirror whose temporary files nobody shares. */
export async function rehearsable(options?: MirroredOptions): Promise<Mirrored> {
  ownTemporaryFolder();
  return mirrored(options);
}

/** The channels in which a rehearsal of --json --addresses sees a person in the end. */
export function foretold({ json }: Said): Record<string, Record<string, string> | undefined> {
  const people: { key: string; after: { channels: Record<string, string> } | null }[] = json.people;
  return Object.fromEntries(people.map(({ key, after }) => [key, after?.channels]));
}
