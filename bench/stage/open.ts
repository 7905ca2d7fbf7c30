/** The platform in a process of its own. */
import type { ChildProcess } from 'node:child_process';
import { ask, begin } from './child.ts';
import type { PlatformReady, PlatformTask } from './platform.ts';

export async function open(task: PlatformTask): Promise<{ url: string; child: ChildProcess }> {
  const child = begin('stage/platform', task);
  const { url } = await ask<PlatformReady>(child);
  return { url, child };
}
