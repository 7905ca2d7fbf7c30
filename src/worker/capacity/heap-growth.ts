/**
 * Keeps the heap of a worker small. V8 collects old objects when the heap has grown by a factor
 * that it derives from the memory of the machine. On a large one, a worker grows to several times
 * its size between two collections, and keeps the pages for its other garbage.
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Lets V8 collect old objects when the heap has grown by 30 %. Call it when the modules are loaded,
 * because V8 uses compiled code from the cache only with the flags of the time at which it was
 * stored. Does nothing on a version of Node whose V8 may not know the option.
 */
export function limitHeapGrowth(nodeVersion: string): void {
  if (Number.parseInt(nodeVersion, 10) <= 24) setFlagsFromString('--heap-growing-percent=30');
}
