/** Decides whether a run compares everything. */
import { isRecord, type Mirror, type RunOptions } from '../../engine/context/mirror-context.ts';
import type { FullCode } from '../../engine/report/full-reasons.ts';
import { Invalid } from '../../domain/errors.ts';
import { isFirstLoad } from '../../engine/context/first-load.ts';
import { copiedAt } from '../../compose/snapshot-marks.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { keyOf } from '../../views/lookup/person-names.ts';
import { instant } from '../../compose/output/format-values.ts';

/**
 * Returns the mode of the run, and why it is full. After a restored or damaged snapshot the run is
 * full, because its rows do not count until the platform has been listed. The word for a person
 * becomes the person's key.
 */
export async function modeNow(
  mirror: Mirror,
  { mode, because = [] }: Pick<RunOptions, 'mode' | 'because'>,
  shell: Shell,
): Promise<Required<Pick<RunOptions, 'mode' | 'because'>>> {
  if (isRecord(mode)) return { mode, because };
  if (typeof mode !== 'string') {
    return { mode: { single: await keyOf(mode.single, mirror, shell.stop) }, because };
  }
  const asked: FullCode[] = mode === 'full' ? [...because] : [];
  const lost = mirror.notes.length > 0;
  const at = copiedAt(mirror.snapshot.meta);
  if (mode === 'undo') {
    if (lost || at !== undefined) throw copied(mirror.name);
    return { mode, because };
  }
  if (!lost && at !== undefined && mode !== 'full') {
    shell.note(
      `crm-mirror: the snapshot was put back from a backup of ${instant(at)}: this run is a full one`,
    );
  }
  // A first load is a reason only for a run that is full anyway.
  const first = isFirstLoad({ snapshot: mirror.snapshot, firstLoad: false });
  if (mode === 'full' && first) asked.push('first-load');
  const needed: FullCode[] = [
    ...(lost ? ['snapshot-lost' as const] : []),
    ...(at === undefined ? [] : ['snapshot-restored' as const]),
  ];
  return { mode: needed.length > 0 ? 'full' : mode, because: [...asked, ...needed] };
}

function copied(name: string): Invalid {
  return new Invalid(`${name}: the snapshot was lost or put back from a backup`, {
    fix: 'run `crm-mirror sync` first, which lists the platform',
  });
}
