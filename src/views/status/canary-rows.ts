/** Tells how the last canary ended, and who counts against one that is out of bounds. */
import { canaryBounds, type CanaryEnd } from '../../domain/guards/canary.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { canaryWords, sliceWords, type ToldCanary } from '../../engine/report/canary-text.ts';
import { instant } from '../../compose/output/format-values.ts';

/** How the last canary ended, as `status` shows it. */
export interface ToldCanaryEnd extends Pick<
  ToldCanary,
  'class' | 'run' | 'size' | 'of' | 'found' | 'counts'
> {
  ended: CanaryEnd['is'];
  at: string;
}

/** Returns the end of a canary as programs read it. */
export function tellCanaryEnd({ is: ended, at, says, counts, ...of }: CanaryEnd): ToldCanaryEnd {
  return { ...of, ended, at: instant(at), found: says ?? null, counts: counts ?? null };
}

/** Formats the canaries that are open, as one row. */
export function canaryRow(canaries: readonly ToldCanary[]): string {
  const told = canaries.map((one) => `${canaryWords(one)}${lookWords(one)}`);
  return told.join('; ') || 'none is under way';
}

/** States how many of the slice count for each cause, and the commands that name them. */
function lookWords({ class: of, run, counts }: ToldCanary): string {
  if (!counts) return '';
  const all = canaryBounds.map((bound) => `${bound} ${withCommas(counts[bound])}`).join(', ');
  const explains =
    guardRows[of].recordType === 'contact'
      ? ', `crm-mirror explain PERSON` says what became of one'
      : '';
  return ` (${all}): \`crm-mirror runs ${run}\` lists the slice${explains}`;
}

const ends: Record<Exclude<CanaryEnd['is'], 'passed'>, string> = {
  approved: 'approved',
  replaced: 'ended by another mapping',
  unwanted: 'ended, because no run plans the rest any more,',
};

/** States how a canary ended, and when. */
export function canaryEndWords({ ended, at, found, ...told }: ToldCanaryEnd): string {
  const slice = sliceWords(told);
  if (ended === 'passed') return `${slice} was within bounds at ${at}`;
  return `${slice} was out of bounds: ${found}; ${ends[ended]} at ${at}`;
}
