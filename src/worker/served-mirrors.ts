/**
 * Serves the mirrors of a folder, whose files come, change and go while the worker runs.
 *
 *   the file is        the mirror is     result
 *   usable             not served        served
 *   another one now    served            leaves after its current run, and is served anew
 *   refused            served            leaves after its current run; its schedule stays in Redis
 *   gone               served            leaves after its current run, with its schedule
 *   usable             served, but       leaves after its current run, and waits for its turn
 *                      placed elsewhere
 *   usable             failed            closed; served again a minute later, or when the file
 *                                        changes
 *
 * The steps of one file are taken one after the other, towards what the folder showed last.
 */
import pLimit from 'p-limit';
import { systemClock } from '../http/system-clock.ts';
import { explain } from '../compose/output/failure-report.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type FolderFiles, isRefused, type RefusedFile, type Workable } from './mirror-folder.ts';
import type { Served } from './mirror-service.ts';

const retryMs = 60_000;

interface Place {
  file: string;
  /** What the folder shows; undefined if the file is gone. */
  shown: Workable | RefusedFile | undefined;
  served: Served | undefined;
  isLeaving: boolean;
  /** Why the mirror has failed; undefined while it is served. */
  failure: string | undefined;
  /** Takes one step at a time. */
  turn: ReturnType<typeof pLimit>;
}

export type ServedMirrors = ReturnType<typeof createServedMirrors>;

/** Creates the set. Nothing is served yet. */
export function createServedMirrors({
  shell,
  serve,
}: {
  shell: Shell;
  serve(config: Workable): Served;
}) {
  const places = new Map<string, Place>();
  const served: Served[] = [];

  /** Moves a place to what the folder shows. Never throws. */
  const move = async (place: Place): Promise<void> => {
    while (!shell.stop.aborted) {
      const { shown } = place;
      const isRefusedNow = shown !== undefined && isRefused(shown);
      const wanted = shown && !isRefused(shown) ? shown : undefined;
      if (place.served?.config === wanted) break;
      if (place.served) {
        const leaving = place.served;
        const changed = isRefusedNow
          ? 'it is stopped once its run has ended'
          : 'its configuration has changed: it is opened anew once its run has ended';
        const why = shown
          ? changed
          : 'its file is gone: it is no longer served once its run has ended';
        shell.note(`crm-mirror: ${leaving.mirror}: ${why}`);
        await leave(place, leaving);
      } else if (wanted) {
        const own = serve(wanted);
        place.served = own;
        place.failure = undefined;
        served.push(own);
        own.failed.catch((error: unknown) => void fail(place, own, error));
      }
    }
    if (!place.shown && !place.served) places.delete(place.file);
  };
  const leave = async (place: Place, leaving: Served): Promise<void> => {
    place.isLeaving = true;
    // Its schedule has to go if the file no longer names the mirror.
    await leaving.leave(() => {
      const { shown } = place;
      return shown === undefined || (!isRefused(shown) && shown.mirror !== leaving.mirror);
    });
    place.isLeaving = false;
    remove(leaving);
    place.served = undefined;
  };
  const fail = async (place: Place, own: Served, error: unknown): Promise<void> => {
    const { text } = explain(error);
    for (const line of text.split('\n')) shell.note(`crm-mirror: ${own.mirror}: ${line}`);
    await place.turn(async () => {
      if (place.served !== own) return;
      remove(own);
      place.served = undefined;
      place.failure = text;
      await own.close();
    });
    await systemClock.sleep(retryMs, shell.stop).catch(() => undefined);
    await place.turn(async () => move(place));
  };
  const remove = (one: Served): void => {
    const at = served.indexOf(one);
    if (at >= 0) served.splice(at, 1);
  };

  return {
    /** The mirrors that are served now. The list changes as they come and go. */
    served,
    /** Returns the files whose mirrors are stopped, and why. */
    refused: (): RefusedFile[] =>
      [...places.values()].flatMap(({ file, shown, failure }) => {
        if (shown && isRefused(shown)) return [shown];
        return failure === undefined ? [] : [{ file, why: failure }];
      }),
    /** Serves what the folder shows, and nothing else. */
    become(files: FolderFiles): void {
      for (const file of new Set([...places.keys(), ...files.keys()])) {
        const place = places.get(file) ?? {
          file,
          shown: undefined,
          served: undefined,
          isLeaving: false,
          failure: undefined,
          turn: pLimit(1),
        };
        places.set(file, place);
        const before = place.shown;
        place.shown = files.get(file);
        if (before === place.shown) continue;
        if (place.shown && isRefused(place.shown)) {
          for (const line of place.shown.why.split('\n')) shell.note(`crm-mirror: ${line}`);
          shell.note(`crm-mirror: ${file}: its mirror is stopped until the file is mended`);
        }
        place.failure = undefined;
        void place.turn(async () => move(place));
      }
    },
    /** Releases the mirrors of this worker of which `isLent` says that others have to have them. */
    release(isLent: (mirror: string) => boolean): void {
      for (const place of places.values()) {
        const { served: own, isLeaving } = place;
        if (!own || isLeaving || !own.isHere() || !isLent(own.mirror)) continue;
        void place.turn(async () => {
          // Once its run has ended, it waits for its turn.
          if (place.served !== own || shell.stop.aborted) return;
          shell.note(`crm-mirror: ${own.mirror}: another worker takes it once its run has ended`);
          await leave(place, own);
          await move(place);
        });
      }
    },
    /** Stops to serve. Waits for work in progress, which the worker's `stop` interrupts. */
    async close(): Promise<void> {
      // A mirror that is leaving has been interrupted, and leaves.
      await Promise.all([...places.values()].map(async ({ turn }) => turn(() => undefined)));
      await Promise.all(served.splice(0).map(async (one) => one.close()));
    },
  };
}
